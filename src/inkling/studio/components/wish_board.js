// Tokens that wish (left) and what can be wished for (right), with links between (see wish_board.py).
// A link is drawn by dragging from left to right, or by choosing one at the left and then one at the right.
const LEAST_WEIGHT = 0.02;

export default {
  template: `<div class="board" role="group" :aria-label="label" @keydown.esc="release" @pointermove="move" @pointerup="up">
    <svg class="board-links" aria-hidden="true">
      <path v-for="link in links" :d="link.path" :class="link.kind" :style="link.style"></path>
      <path v-if="trail" :d="trail" class="trail"></path>
      <template v-for="link in links">
        <text v-if="link.text" :x="link.x" :y="link.y" :class="link.kind">{{ link.text }}</text>
      </template>
    </svg>
    <div class="board-side" role="group" aria-label="Tokens that wish">
      <div class="board-title">token</div>
      <button v-for="(token, i) in tokens" type="button" class="board-token" :class="{held: held === i}" :ref="'from' + i"
        :aria-pressed="held === i ? 'true' : 'false'" @pointerdown="down(i, $event)" @click="chosen(i, $event)">
        <b>x{{ i + 1 }}</b><span>{{ token }}</span><em v-if="wanted[i]">wants {{ wanted[i] }}</em></button>
    </div>
    <div class="board-side">
      <div class="board-title">should output</div>
      <div class="board-chips" role="group" aria-label="Directions to output">
        <button v-for="(name, c) in directions" type="button" class="board-chip" :ref="'wish' + c" data-kind="wish"
          :data-index="c" :aria-label="'output ' + name" @click="target('wish', c)">{{ name }}</button>
      </div>
      <div class="board-title">must look at (if you wish)</div>
      <div class="board-chips" role="group" aria-label="Tokens to look at">
        <button v-for="(token, j) in tokens" type="button" class="board-chip seen" :ref="'look' + j" data-kind="look"
          :data-index="j" :aria-label="'look at x' + (j + 1)" @click="target('look', j)"><b>x{{ j + 1 }}</b> {{ token }}</button>
      </div>
    </div>
    <div class="board-hint quiet" aria-live="polite">{{ hint }}</div>
  </div>`,
  props: { tokens: Array, directions: Array, wishes: Array, looks: Array, weights: Array, label: String },
  data() {
    return { held: -1, links: [], trail: "", dragging: false, lost: false };
  },
  computed: {
    wanted() {
      const found = this.tokens.map(() => "");
      for (const [i, c, number] of this.wishes) {
        const size = Math.abs(number) === 1 ? "" : String(+Math.abs(number).toPrecision(4));
        found[i] += (number < 0 ? (found[i] ? " − " : "−") : found[i] ? " + " : "") + size + this.directions[c];
      }
      return found;
    },
    hint() {
      if (this.lost) return "First choose a token at the left.";
      if (this.held < 0) return "Drag from a token to what it should output; drag again for a minus, and again to take it away.";
      return `x${this.held + 1} is chosen: now choose what it should output, or must look at. Escape lets it go.`;
    },
  },
  mounted() {
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.$el);
    this.$nextTick(() => this.draw());
  },
  unmounted() {
    this.watcher.disconnect();
  },
  watch: {
    tokens: { handler: "redraw", deep: true },
    directions: { handler: "redraw", deep: true },
    wishes: { handler: "redraw", deep: true },
    looks: { handler: "redraw", deep: true },
    weights: { handler: "redraw", deep: true },
  },
  methods: {
    redraw() {
      if (this.held >= this.tokens.length) this.release();
      this.$nextTick(() => this.draw());
    },
    box(name) {
      const found = this.$refs[name];
      const element = Array.isArray(found) ? found[0] : found;
      if (!element) return null;
      const whole = this.$el.getBoundingClientRect();
      const box = element.getBoundingClientRect();
      return { left: box.left - whole.left, right: box.right - whole.left, y: (box.top + box.bottom) / 2 - whole.top };
    },
    curve(from, x, y) {
      const bend = Math.max(24, (x - from.right) / 2);
      return `M${from.right},${from.y}C${from.right + bend},${from.y} ${x - bend},${y} ${x},${y}`;
    },
    draw() {
      const links = [];
      const link = (i, name, kind, text, style) => {
        const from = this.box("from" + i);
        const to = this.box(name);
        if (!from || !to) return;
        links.push({ kind, style, text, path: this.curve(from, to.left, to.y), x: to.left - 13, y: to.y - 6 });
      };
      (this.weights ?? []).forEach((row, i) =>
        row.forEach((weight, j) => {
          if (weight >= LEAST_WEIGHT) link(i, "look" + j, "weight", "", { strokeOpacity: weight, strokeWidth: 1 + 4 * weight });
        }),
      );
      for (const [i, j] of this.looks) link(i, "look" + j, "look", "", {});
      for (const [i, c, number] of this.wishes) {
        const size = Math.abs(number) === 1 ? "" : String(+Math.abs(number).toPrecision(4));
        link(i, "wish" + c, number < 0 ? "minus" : "plus", (number < 0 ? "−" : size ? "" : "+") + size, {});
      }
      this.links = links;
    },
    down(i, event) {
      if (event.button) return;
      this.pressed = i;
      this.start = [event.clientX, event.clientY];
      event.currentTarget.releasePointerCapture?.(event.pointerId);
    },
    move(event) {
      if (this.pressed === undefined || (event.pointerType === "mouse" && !event.buttons)) return;
      if (!this.dragging && Math.hypot(event.clientX - this.start[0], event.clientY - this.start[1]) < 6) return;
      this.dragging = true;
      this.held = this.pressed;
      this.lost = false;
      const whole = this.$el.getBoundingClientRect();
      this.trail = this.curve(this.box("from" + this.held), event.clientX - whole.left, event.clientY - whole.top);
    },
    up(event) {
      if (this.dragging) {
        const under = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-kind]");
        if (under && this.$el.contains(under)) this.$emit(under.dataset.kind, [this.held, Number(under.dataset.index)]);
        this.release();
        this.justDragged = true;
        setTimeout(() => (this.justDragged = false), 0);
      }
      this.pressed = undefined;
      this.dragging = false;
    },
    chosen(i) {
      if (this.justDragged) return;
      this.lost = false;
      this.held = this.held === i ? -1 : i;
    },
    target(kind, index) {
      if (this.justDragged) return;
      if (this.held < 0) this.lost = true;
      else this.$emit(kind, [this.held, index]);
    },
    release() {
      this.held = -1;
      this.trail = "";
      this.lost = false;
    },
  },
};
