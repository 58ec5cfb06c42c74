// Numbers with their names below (see live.py). Only what has changed is set, in a text node that stays and in a box
// whose size does not depend on it, so that nothing around it is styled or laid out again.
export default {
  template: `<div class="line figures"></div>`,
  props: { keys: Array, apart: Number },
  mounted() {
    this.boxes = {};
    for (const key of this.keys) {
      const [box, value, name] = ["figure-box", "figure-value", "figure-name"].map((className) => {
        const element = document.createElement("div");
        element.className = className;
        return element;
      });
      value.dataset.testid = `figure-${key}`;
      value.append("");
      name.append("");
      box.append(value, name);
      this.$el.append(box);
      this.boxes[key] = { box, value, name };
    }
    this.show({});
  },
  unmounted() {
    clearTimeout(this.next);
  },
  methods: {
    // The first at once, the others as far apart as they came; what was still to be shown is older and left out.
    say([first, ...rest]) {
      clearTimeout(this.next);
      this.show(first);
      if (rest.length) this.next = setTimeout(() => this.say(rest), this.apart);
    },
    show(figures) {
      for (const [key, { box, value, name }] of Object.entries(this.boxes)) {
        box.hidden = !(key in figures);
        if (box.hidden) continue;
        const [said, called] = figures[key];
        if (value.firstChild.data !== said) {
          if (value.firstChild.data.length !== said.length) value.style.width = `${said.length}ch`;
          value.firstChild.data = said;
        }
        if (name.firstChild.data !== called) name.firstChild.data = called;
      }
    },
  },
};
