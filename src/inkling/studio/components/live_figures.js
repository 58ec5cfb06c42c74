// Numbers with their names below (see live.py). Text is set only where it has changed.
export default {
  template: `<div class="line figures"></div>`,
  props: { keys: Array },
  mounted() {
    this.boxes = {};
    for (const key of this.keys) {
      const [box, value, name] = ["figure-box", "figure-value", "figure-name"].map((className) => {
        const element = document.createElement("div");
        element.className = className;
        return element;
      });
      value.dataset.testid = `figure-${key}`;
      box.append(value, name);
      this.$el.append(box);
      this.boxes[key] = { box, value, name };
    }
    this.say({});
  },
  methods: {
    say(figures) {
      for (const [key, { box, value, name }] of Object.entries(this.boxes)) {
        box.hidden = !(key in figures);
        if (box.hidden) continue;
        const [said, called] = figures[key];
        if (value.textContent !== said) value.textContent = said;
        if (name.textContent !== called) name.textContent = called;
      }
    },
  },
};
