// A text in pieces (see marked_text.py). Pieces are [text, shade, note]; everything is set as text, never as markup.
const ASK_AFTER_MS = 120;
const BLOCK = 128; // pieces that are children of one element: a rule about siblings is slow where there are thousands

export default {
  template: `<div class="marked" :class="{pickable: picks}" tabindex="0" role="group" :aria-label="label"
    @mouseover="pointed" @mouseleave="leave" @click="clicked" @keydown="key" @blur="leave"></div>`,
  props: { pieces: Array, label: String, asks: Boolean, picks: Boolean },
  mounted() {
    this.at = -1;
    this.told = new Map();
    this.rebuild();
  },
  unmounted() {
    clearTimeout(this.timer);
  },
  watch: {
    pieces() {
      this.rebuild();
    },
  },
  methods: {
    rebuild() {
      this.leave();
      this.told.clear();
      this.count = 0;
      this.$el.replaceChildren();
      this.append(this.pieces, 0);
    },
    append(pieces, first) {
      // Those that are here already came with all others, in an update that overtook this.
      for (const [text, shade, note] of pieces.slice(Math.max(0, this.count - first))) {
        if (this.count % BLOCK === 0) {
          this.block = document.createElement("div");
          this.block.className = "run";
          this.$el.insertBefore(this.block, this.note ?? null);
        }
        const span = document.createElement("span");
        span.textContent = text.replaceAll("\n", "↵\n");
        if (shade) span.className = shade;
        if (note) span._note = note;
        span._index = this.count++;
        this.block.append(span);
      }
    },
    span(index) {
      return this.$el.children[Math.floor(index / BLOCK)]?.children[index % BLOCK];
    },
    pointed(event) {
      const index = event.target._index;
      if (index !== undefined && index !== this.at) this.show(index);
    },
    clicked(event) {
      if (this.picks && event.target._index !== undefined) this.$emit("pick", event.target._index);
    },
    key(event) {
      const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 };
      if (event.key in moves) {
        event.preventDefault();
        const next = Math.max(0, Math.min(this.count - 1, Math.max(this.at, 0) + (this.at < 0 ? 0 : moves[event.key])));
        if (this.count) this.show(next);
        this.span(next)?.scrollIntoView({ block: "nearest" });
      } else if (event.key === "Enter" && this.picks && this.at >= 0) {
        this.$emit("pick", this.at);
      } else if (event.key === "Escape") {
        this.leave();
      }
    },
    show(index) {
      this.leave();
      this.at = index;
      const span = this.span(index);
      span.classList.add("on");
      this.draw();
      if (this.asks && !this.told.has(index)) {
        this.timer = setTimeout(() => this.$emit("ask", index), ASK_AFTER_MS);
      }
    },
    leave() {
      clearTimeout(this.timer);
      if (this.at >= 0) this.span(this.at)?.classList.remove("on");
      this.at = -1;
      this.note?.remove();
      this.note = null;
    },
    tell(index, title, choices) {
      this.told.set(index, [title, choices]);
      if (index === this.at) this.draw();
    },
    draw() {
      const span = this.span(this.at);
      const [title, choices] = this.told.get(this.at) ?? ["", []];
      this.note?.remove();
      this.note = null;
      if (!span._note && !choices.length) return;
      const note = document.createElement("div");
      note.className = "marked-note";
      note.setAttribute("role", "status");
      if (span._note) note.append(this.words("div", "", span._note));
      if (title) note.append(this.words("div", "quiet", title));
      const most = Math.max(1e-9, ...choices.map((choice) => choice[1]));
      for (const [text, share, chosen] of choices) {
        const row = this.words("div", chosen ? "choice chosen" : "choice", "");
        const bar = this.words("span", "bar", "");
        bar.style.width = `${(100 * share) / most}%`;
        row.append(this.words("span", "", text.replaceAll("\n", "↵") || "∅"), bar);
        row.append(this.words("span", "number", `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`));
        note.append(row);
      }
      this.$el.append(note);
      this.note = note;
      const box = this.$el.getBoundingClientRect();
      const place = span.getClientRects()[0] ?? span.getBoundingClientRect();
      const left = Math.max(0, Math.min(place.left - box.left, box.width - note.offsetWidth));
      note.style.left = `${left}px`;
      const [top, bottom] = this.seen();
      const fits = place.bottom + 6 + note.offsetHeight <= bottom || place.top - 6 - note.offsetHeight < top;
      note.style.top = `${(fits ? place.bottom + 6 : place.top - 6 - note.offsetHeight) - box.top}px`;
    },
    seen() {
      // Between which heights the text can be seen: in the window, or in a box that it scrolls in.
      for (let box = this.$el.parentElement; box; box = box.parentElement) {
        if (["auto", "scroll"].includes(getComputedStyle(box).overflowY)) {
          const around = box.getBoundingClientRect();
          return [Math.max(0, around.top), Math.min(window.innerHeight, around.bottom)];
        }
      }
      return [0, window.innerHeight];
    },
    words(tag, className, text) {
      const element = document.createElement(tag);
      if (className) element.className = className;
      element.textContent = text;
      return element;
    },
  },
};
