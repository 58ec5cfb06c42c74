// The attention maps of all heads on one canvas (see map_canvas.py). Weights come as half-precision numbers, row by row
// up to the diagonal; all text is set as text.
const GAP = 14;
const TITLE = 19;
const SMALLEST = 64;
const LARGEST = 230;
const LARGE = 620;
const LABEL = 11; // pixels of a cell from which on tokens stand beside it
const FAINTEST = 0.05; // tells a weight of 0 from a place that may not be seen

const HALVES = (() => {
  const found = new Float32Array(1 << 16);
  for (let bits = 0; bits < found.length; bits++) {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const size = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
    found[bits] = exponent === 31 ? NaN : bits >> 15 ? -size : size;
  }
  return found;
})();

export default {
  template: `<div class="maps">
    <div class="maps-bar line"><button v-if="large >= 0" type="button" class="maps-button" @click="leaveLarge">← All heads</button>
      <span class="maps-title">{{ title }}</span>
      <button v-if="large >= 0" type="button" class="maps-button" aria-label="Head before" @click="turn(-1)">‹</button>
      <button v-if="large >= 0" type="button" class="maps-button" aria-label="Next head" @click="turn(1)">›</button></div>
    <div class="maps-area" ref="area"><canvas ref="canvas" tabindex="0" role="application" :aria-label="label"
      @mousemove="pointed" @mouseleave="leave" @click="clicked" @keydown="key" @blur="leave"></canvas>
      <div class="marked-note maps-note" role="status" ref="note" hidden></div></div>
    <div class="maps-text" ref="text" @mouseover="word"></div>
  </div>`,
  props: { maps: Object, label: String },
  data() {
    return { large: -1, chosen: -1, title: "" };
  },
  mounted() {
    this.at = null; // [map, query, key] that is pointed at
    this.resized = new ResizeObserver(() => this.layOut());
    this.resized.observe(this.$refs.area);
    this.themed = new MutationObserver(() => this.paint());
    this.themed.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.take();
  },
  unmounted() {
    this.resized.disconnect();
    this.themed.disconnect();
  },
  watch: {
    maps() {
      this.take();
    },
  },
  methods: {
    take() {
      const { tokens, layers, heads, packed } = this.maps;
      const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
      const view = new DataView(bytes.buffer);
      this.weights = new Float32Array(bytes.length / 2);
      for (let i = 0; i < this.weights.length; i++) this.weights[i] = HALVES[view.getUint16(2 * i, true)];
      this.count = layers * heads;
      this.size = tokens.length;
      if (this.large >= this.count) this.large = -1;
      this.at = null;
      const text = this.$refs.text;
      text.replaceChildren(
        ...tokens.map((token, index) => {
          const span = document.createElement("span");
          span.textContent = token.replaceAll("\n", "↵\n");
          span._index = index;
          return span;
        }),
      );
      this.paint();
    },
    weight(map, query, key) {
      return this.weights[map * ((this.size * (this.size + 1)) / 2) + (query * (query + 1)) / 2 + key];
    },
    name(map) {
      const heads = Math.max(1, this.maps.heads);
      return `${Math.floor(map / heads) + 1}.${(map % heads) + 1}`;
    },
    full(map) {
      const role = this.maps.roles?.[map];
      return `head ${this.name(map)}${role ? `, ${role}` : ""}`;
    },
    paint() {
      // every map once, a pixel a weight; the canvas then only scales them
      const look = getComputedStyle(this.$el);
      this.ink = look.getPropertyValue("--ink").trim();
      this.muted = look.getPropertyValue("--muted").trim();
      this.line = look.getPropertyValue("--line-2").trim();
      this.grid = look.getPropertyValue("--grid").trim();
      const [red, green, blue] = look.getPropertyValue("--cool").trim().split(" ").map(Number);
      this.pictures = [];
      let next = 0; // weights lie in the order in which they are drawn
      for (let map = 0; map < this.count; map++) {
        const picture = new ImageData(this.size, this.size);
        for (let query = 0; query < this.size; query++) {
          let at = 4 * query * this.size;
          for (let key = 0; key <= query; key++, at += 4) {
            picture.data[at] = red;
            picture.data[at + 1] = green;
            picture.data[at + 2] = blue;
            picture.data[at + 3] = 255 * (FAINTEST + (1 - FAINTEST) * Math.sqrt(this.weights[next++]));
          }
        }
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = this.size;
        canvas.getContext("2d").putImageData(picture, 0, 0);
        this.pictures.push(canvas);
      }
      this.layOut();
    },
    layOut() {
      if (!this.pictures) return;
      const width = this.$refs.area.clientWidth;
      if (!width || !this.size) return;
      this.boxes = [];
      let height;
      if (this.large >= 0) {
        const longest = Math.max(...this.maps.tokens.map((token) => token.length));
        const room = Math.min(110, 16 + 7 * longest);
        const side = Math.min(width - room - 4, LARGE);
        const labelled = side / this.size >= LABEL;
        const left = labelled ? room : 2;
        const map = labelled ? side : Math.min(width - 4, LARGE);
        this.boxes[this.large] = { x: left, y: 2, side: map, labelled };
        height = map + (labelled ? room : 0) + 6;
      } else {
        const across = Math.max(1, Math.min(this.maps.heads, Math.floor((width + GAP) / (SMALLEST + GAP))));
        const side = Math.floor(Math.min(LARGEST, (width - GAP * (across - 1)) / across - 1));
        const rows = Math.ceil(this.maps.heads / across);
        for (let map = 0; map < this.count; map++) {
          const layer = Math.floor(map / this.maps.heads);
          const head = map % this.maps.heads;
          const row = layer * rows + Math.floor(head / across);
          this.boxes[map] = { x: (head % across) * (side + GAP) + 1, y: row * (side + TITLE + GAP) + TITLE, side };
        }
        height = this.maps.layers * rows * (side + TITLE + GAP);
      }
      const ratio = window.devicePixelRatio || 1;
      const canvas = this.$refs.canvas;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      this.title = this.large >= 0 ? this.full(this.large) : `${this.maps.layers} layers of ${this.maps.heads} heads`;
      this.draw();
    },
    draw() {
      const canvas = this.$refs.canvas;
      const pen = canvas.getContext("2d");
      const ratio = window.devicePixelRatio || 1;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, canvas.width, canvas.height);
      pen.font = "12.5px system-ui, sans-serif";
      this.boxes.forEach((box, map) => {
        pen.imageSmoothingEnabled = box.side < this.size;
        pen.imageSmoothingQuality = "high";
        pen.strokeStyle = this.grid;
        pen.strokeRect(box.x - 0.5, box.y - 0.5, box.side + 1, box.side + 1);
        pen.drawImage(this.pictures[map], box.x, box.y, box.side, box.side);
        if (this.large < 0) {
          pen.fillStyle = this.chosen === map ? this.ink : this.muted;
          pen.textAlign = "left";
          pen.fillText(this.shorter(pen, this.full(map).replace("head ", ""), box.side), box.x, box.y - 6);
          if (this.chosen === map) {
            pen.strokeStyle = this.line;
            pen.strokeRect(box.x - 2, box.y - 2, box.side + 4, box.side + 4);
          }
        } else if (box.labelled) {
          this.letter(pen, box);
        }
      });
      if (this.at) {
        const [map, query, key] = this.at;
        const box = this.boxes[map];
        if (!box) return;
        const cell = box.side / this.size;
        pen.strokeStyle = this.line;
        pen.lineWidth = 1.5;
        pen.strokeRect(box.x, box.y + query * cell, (query + 1) * cell, Math.max(cell, 1.5));
        pen.strokeRect(box.x + key * cell, box.y + query * cell, Math.max(cell, 3), Math.max(cell, 3));
        pen.lineWidth = 1;
      }
    },
    shorter(pen, words, room) {
      if (pen.measureText(words).width <= room) return words;
      while (words.length > 1 && pen.measureText(`${words}…`).width > room) words = words.slice(0, -1);
      return `${words}…`;
    },
    letter(pen, box) {
      const cell = box.side / this.size;
      pen.fillStyle = this.muted;
      this.maps.tokens.forEach((token, index) => {
        const words = this.shorter(pen, this.plain(token), 94);
        const middle = (index + 0.5) * cell;
        pen.textAlign = "right";
        pen.fillText(words, box.x - 6, box.y + middle + 4);
        pen.save();
        pen.translate(box.x + middle + 4, box.y + box.side + 7);
        pen.rotate(-Math.PI / 2);
        pen.fillText(words, 0, 0);
        pen.restore();
      });
    },
    plain(token) {
      return token.replaceAll("\n", "↵").replaceAll(" ", "␣").replaceAll("\t", "⇥");
    },
    find(event) {
      const place = this.$refs.canvas.getBoundingClientRect();
      const x = event.clientX - place.left;
      const y = event.clientY - place.top;
      for (let map = 0; map < this.count; map++) {
        const box = this.boxes[map];
        if (!box || x < box.x || y < box.y || x >= box.x + box.side || y >= box.y + box.side) continue;
        const query = Math.floor(((y - box.y) / box.side) * this.size);
        return [map, query, Math.floor(((x - box.x) / box.side) * this.size)];
      }
      return null;
    },
    pointed(event) {
      const found = this.find(event);
      if (!found) this.leave();
      else this.point(found[0], found[1], Math.min(found[1], found[2]));
    },
    point(map, query, key) {
      this.at = [map, query, key];
      this.draw();
      this.shade(map, query);
      const box = this.boxes[map];
      const note = this.$refs.note;
      const weight = this.weight(map, query, key);
      const said = weight < 0.0005 ? weight.toExponential(1) : weight.toFixed(3);
      note.textContent = `${this.full(map)}\nat ${query + 1}: ${this.plain(this.maps.tokens[query])}\nlooks at ${key + 1}: ${this.plain(this.maps.tokens[key])}\nweight ${said}`;
      note.hidden = false;
      const cell = box.side / this.size;
      const left = Math.min(box.x + (key + 1) * cell + 12, this.$refs.area.clientWidth - note.offsetWidth);
      note.style.left = `${Math.max(0, left)}px`;
      note.style.top = `${box.y + (query + 1) * cell + 12}px`;
    },
    leave() {
      this.$refs.note.hidden = true;
      if (!this.at) return;
      this.at = null;
      this.draw();
    },
    shade(map, query) {
      this.shaded = map;
      for (const span of this.$refs.text.children) {
        const seen = span._index <= query;
        span.style.background = seen ? `rgb(var(--cool) / ${(0.75 * Math.sqrt(this.weight(map, query, span._index))).toFixed(3)})` : "";
        span.className = span._index === query ? "on" : seen ? "" : "later";
      }
    },
    word(event) {
      if (event.target._index === undefined) return;
      const map = this.large >= 0 ? this.large : (this.shaded ?? 0);
      this.shade(Math.min(map, this.count - 1), event.target._index);
    },
    clicked(event) {
      const found = this.find(event);
      if (found && this.large < 0) this.enlarge(found[0]);
      else this.pointed(event); // by a finger, which has not pointed before
    },
    enlarge(map) {
      this.leave();
      this.large = this.chosen = map;
      this.layOut();
    },
    leaveLarge() {
      this.leave();
      this.large = -1;
      this.layOut();
    },
    turn(by) {
      this.enlarge((this.large + by + this.count) % this.count);
    },
    key(event) {
      const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
      if (event.key in moves) {
        event.preventDefault();
        const [down, right] = moves[event.key];
        if (this.large < 0) {
          const next = this.chosen < 0 ? 0 : this.chosen + right + down * this.maps.heads;
          this.chosen = Math.max(0, Math.min(this.count - 1, next));
          this.draw();
        } else {
          const [, query, key] = this.at ?? [0, this.size - 1, this.size - 1];
          const row = this.at ? Math.max(0, Math.min(this.size - 1, query + down)) : query;
          this.point(this.large, row, Math.max(0, Math.min(row, this.at ? key + right : key)));
        }
      } else if (event.key === "Enter" && this.large < 0 && this.chosen >= 0) {
        this.enlarge(this.chosen);
      } else if (event.key === "Escape" && this.large >= 0) {
        this.leaveLarge();
      }
    },
  },
};
