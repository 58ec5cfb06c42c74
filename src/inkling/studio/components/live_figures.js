// Numbers with their names below (see live.py). They stand in the page as text. While they change several times a
// second they are painted over it by a thread of their own (live_brush.js), and the text, which cannot be seen then but
// can be read out, selected and copied, follows every second or two.
const TEXT_SECONDS = 1.5;

export default {
  template: `<div class="line figures"><canvas hidden aria-hidden="true"></canvas></div>`,
  props: { keys: Array, apart: Number, brush: String },
  mounted() {
    this.canvas = this.$el.firstElementChild;
    this.boxes = {};
    this.written = 0; // when the text was, in milliseconds
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
    this.write({});
    this.resizes = new ResizeObserver(() => this.place());
    this.resizes.observe(this.$el);
    this.looks = new MutationObserver(() => this.place());
    this.looks.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  },
  unmounted() {
    clearTimeout(this.next);
    this.worker?.terminate();
    this.resizes.disconnect();
    this.looks.disconnect();
  },
  methods: {
    // One is said to stand; several are shown as far apart as they came, and more will follow.
    say(several) {
      clearTimeout(this.next);
      if (several.length > 1 && this.canvas.transferControlToOffscreen && !this.broken) return this.paint(several);
      this.rest();
      this.play(several);
    },
    rest() {
      this.live = false;
      this.worker?.postMessage({ played: [] });
      this.canvas.hidden = true;
      this.$el.classList.remove("is-live");
    },
    play([first, ...rest]) {
      this.write(first);
      if (rest.length) this.next = setTimeout(() => this.play(rest), this.apart);
    },
    paint(several) {
      if (!this.worker) {
        this.worker = new Worker(this.brush);
        this.worker.onerror = () => {
          this.broken = true; // text that nobody paints over must be seen
          this.rest();
        };
        const canvas = this.canvas.transferControlToOffscreen();
        this.worker.postMessage({ canvas, apart: this.apart }, [canvas]);
      }
      const now = performance.now();
      if (!this.live || now - this.written > 1000 * TEXT_SECONDS) {
        this.written = now;
        const moved = this.write(several[several.length - 1]);
        if (moved || !this.live) {
          this.live = true;
          this.place();
        }
      }
      this.worker.postMessage({ played: several });
    },
    // Where the text stands and how it looks, for the thread that paints over it.
    place() {
      if (!this.live) return;
      this.canvas.hidden = false;
      this.$el.classList.add("is-live");
      const shown = Object.entries(this.boxes).filter(([, { box }]) => !box.hidden);
      const style = getComputedStyle(this.$el.querySelector(".figure-value"));
      this.worker.postMessage({
        width: this.$el.clientWidth,
        height: this.$el.clientHeight,
        ratio: window.devicePixelRatio || 1,
        font: `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`,
        colour: style.color,
        places: shown.map(([key, { value }]) => [key, value.offsetLeft, value.offsetTop, value.offsetHeight]),
      });
    },
    // Only what has changed is set, in a text node that stays and in a box whose size does not depend on it, so that
    // nothing around it is styled or laid out again. Whether something stands elsewhere now.
    write(figures) {
      let moved = false;
      for (const [key, { box, value, name }] of Object.entries(this.boxes)) {
        const hidden = !(key in figures);
        if (box.hidden !== hidden) {
          box.hidden = hidden;
          moved = true;
        }
        if (hidden) continue;
        const [said, called] = figures[key];
        if (value.firstChild.data !== said) {
          if (value.firstChild.data.length !== said.length) {
            value.style.width = `${said.length}ch`;
            moved = true;
          }
          value.firstChild.data = said;
        }
        if (name.firstChild.data !== called) {
          name.firstChild.data = called;
          moved = true;
        }
      }
      return moved;
    },
  },
};
