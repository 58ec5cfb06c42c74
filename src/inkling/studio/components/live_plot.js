// Curves over common axes (see live.py), drawn on one canvas in the colours of the page.
const EDGE = { left: 56, right: 16, top: 12, bottom: 40 };
const TICKS = 6;
const COLOURS = ["--muted", "--grid", "--rule", "--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];
const FORM = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 }); // made once: that takes longer than drawing

function steps(low, high, about) {
  const raw = (high - low) / Math.max(1, about) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const size = [1, 2, 5, 10].find((times) => times * power >= raw) * power;
  const found = [];
  for (let value = Math.ceil(low / size) * size; value <= high + size * 1e-6; value += size) found.push(value);
  return found;
}

function shown(value) {
  return FORM.format(value);
}

export default {
  template: `<div class="live-plot" role="img" :aria-label="label" @mousemove="point" @mouseleave="leave">
    <div class="live-legend"></div><canvas></canvas><div class="live-note" hidden></div></div>`,
  props: { label: String },
  mounted() {
    [this.legend, this.canvas, this.note] = this.$el.children;
    this.at = null;
    this.curves = [];
    // Sizes and colours are asked for when they change and not when something is drawn: asking makes the browser lay
    // out and style the whole page first.
    this.resizes = new ResizeObserver(() => this.measure());
    this.resizes.observe(this.canvas);
    this.looks = new MutationObserver(() => this.look());
    this.looks.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.measure();
    this.look();
  },
  unmounted() {
    this.resizes.disconnect();
    this.looks.disconnect();
  },
  methods: {
    show(xName, yName, curves) {
      const before = this.curves.map((curve) => curve[0]).join("\n");
      [this.xName, this.yName, this.curves] = [xName, yName, curves];
      if (before !== curves.map((curve) => curve[0]).join("\n")) this.name();
      this.draw();
    },
    measure() {
      [this.width, this.height] = [this.canvas.clientWidth, this.canvas.clientHeight];
      this.draw();
    },
    look() {
      const style = getComputedStyle(document.body);
      this.colours = Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(name).trim()]));
      this.draw();
    },
    name() {
      this.legend.replaceChildren(
        ...this.curves.map(([name, number, faint]) => {
          const entry = document.createElement("span");
          const mark = document.createElement("i");
          mark.style.borderTop = `${faint ? 1.5 : 3}px solid var(--line-${(number % 6) + 1})`;
          mark.style.opacity = faint ? 0.6 : 1;
          entry.append(mark, name);
          return entry;
        }),
      );
    },
    frame() {
      const points = this.curves.flatMap((curve) => curve[3]);
      if (!points.length) return null;
      let [x1, y0, y1] = [-Infinity, Infinity, -Infinity];
      for (const [x, y] of points) {
        x1 = Math.max(x1, x);
        y0 = Math.min(y0, y);
        y1 = Math.max(y1, y);
      }
      const room = (y1 - y0) * 0.04 || Math.abs(y1) * 0.1 || 1;
      return { x0: 0, x1: x1 || 1, y0: Math.max(0, y0 - room), y1: y1 + room };
    },
    places() {
      const [width, height] = [this.width - EDGE.left - EDGE.right, this.height - EDGE.top - EDGE.bottom];
      const { x0, x1, y0, y1 } = this.range;
      return {
        x: (value) => EDGE.left + (width * (value - x0)) / (x1 - x0),
        y: (value) => EDGE.top + (height * (y1 - value)) / (y1 - y0),
      };
    },
    draw() {
      const [width, height, ratio] = [this.width, this.height, window.devicePixelRatio || 1];
      if (!width || !height || !this.colours) return;
      if (this.canvas.width !== Math.round(width * ratio)) this.canvas.width = Math.round(width * ratio);
      if (this.canvas.height !== Math.round(height * ratio)) this.canvas.height = Math.round(height * ratio);
      const pen = this.canvas.getContext("2d");
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, height);
      this.range = this.frame();
      if (!this.range) return;
      const place = this.places();
      this.axes(pen, place, width, height);
      for (const [, number, faint, points] of this.curves) {
        pen.strokeStyle = pen.fillStyle = this.colours[`--line-${(number % 6) + 1}`];
        pen.globalAlpha = faint ? 0.5 : 1;
        pen.lineWidth = faint ? 1.3 : 2.2;
        pen.lineJoin = "round";
        pen.beginPath();
        points.forEach(([x, y], i) => (i ? pen.lineTo(place.x(x), place.y(y)) : pen.moveTo(place.x(x), place.y(y))));
        pen.stroke();
        if (!faint && points.length < 40) {
          for (const [x, y] of points) {
            pen.beginPath();
            pen.arc(place.x(x), place.y(y), 2.6, 0, 2 * Math.PI);
            pen.fill();
          }
        }
        pen.globalAlpha = 1;
      }
      if (this.at !== null) {
        pen.strokeStyle = this.colours["--rule"];
        pen.lineWidth = 1;
        pen.beginPath();
        pen.moveTo(place.x(this.at), EDGE.top);
        pen.lineTo(place.x(this.at), height - EDGE.bottom);
        pen.stroke();
      }
    },
    axes(pen, place, width, height) {
      const { x0, x1, y0, y1 } = this.range;
      pen.font = "12px system-ui, sans-serif";
      pen.fillStyle = this.colours["--muted"];
      pen.strokeStyle = this.colours["--grid"];
      pen.lineWidth = 1;
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      for (const value of steps(y0, y1, TICKS)) {
        pen.beginPath();
        pen.moveTo(EDGE.left, place.y(value));
        pen.lineTo(width - EDGE.right, place.y(value));
        pen.stroke();
        pen.fillText(shown(value), EDGE.left - 8, place.y(value));
      }
      pen.textAlign = "center";
      pen.textBaseline = "top";
      for (const value of steps(x0, x1, Math.min(8, width / 90))) {
        pen.fillText(shown(value), place.x(value), height - EDGE.bottom + 6);
      }
      pen.fillText(this.xName, EDGE.left + (width - EDGE.left - EDGE.right) / 2, height - 15);
      pen.save();
      pen.translate(10, EDGE.top + (height - EDGE.top - EDGE.bottom) / 2);
      pen.rotate(-Math.PI / 2);
      pen.textBaseline = "middle";
      pen.fillText(this.yName, 0, 0);
      pen.restore();
    },
    point(event) {
      if (!this.range) return;
      const box = this.canvas.getBoundingClientRect();
      const share = (event.clientX - box.left - EDGE.left) / (box.width - EDGE.left - EDGE.right);
      if (share < 0 || share > 1) return this.leave();
      const x = this.range.x0 + share * (this.range.x1 - this.range.x0);
      const lines = this.curves.flatMap(([name, , , points]) => {
        const near = points.filter((point) => point[0] <= x).pop() ?? points[0];
        return near ? [`${name}: ${shown(near[1])}`] : [];
      });
      this.at = x;
      this.note.hidden = false;
      this.note.textContent = [`${this.xName} ${shown(x)}`, ...lines].join("\n");
      const left = event.clientX - box.left;
      this.note.style.left = `${left > box.width / 2 ? left - this.note.offsetWidth - 14 : left + 14}px`;
      this.draw();
    },
    leave() {
      if (this.at === null) return;
      this.at = null;
      this.note.hidden = true;
      this.draw();
    },
  },
};
