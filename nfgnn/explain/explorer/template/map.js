// The map: points on one canvas, marks on another above it. Brushing, clicking, zooming, navigation with arrow keys.
class NodeMap {
  /** `look` holds what is shown (layout, colouring, part, current, selection); `on` receives the actions of the user. */
  constructor(look, on) {
    this.look = look;
    this.on = on;
    this.box = byId("map");
    this.points = byId("points");
    this.overlay = byId("overlay");
    this.tip = byId("tip");
    this.view = { zoom: 1, x: 0, y: 0 };
    this.cursor = null; // the node under the pointer, or the one that arrow keys have reached
    this.brush = null;
    this.order = this.shuffled();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(this.box);
    this.listen();
  }

  /** A fixed random order of drawing, so that no class lies on top of the others. */
  shuffled() {
    const order = Uint32Array.from({ length: graph.size }, (_, i) => i);
    let state = 1;
    for (let i = graph.size - 1; i > 0; i--) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const j = state % (i + 1);
      [order[i], order[j]] = [order[j], order[i]];
    }
    return order;
  }

  resize() {
    this.width = this.box.clientWidth;
    this.height = this.box.clientHeight;
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.points, this.overlay]) {
      canvas.width = Math.round(this.width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.place();
  }

  /** Fit the chosen layout into the box. */
  place() {
    const place = graph.places[this.look.layout], margin = 18;
    const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
    for (let i = 0; i < place.length; i++) {
      low[i % 2] = Math.min(low[i % 2], place[i]);
      high[i % 2] = Math.max(high[i % 2], place[i]);
    }
    const room = [this.width - 2 * margin, this.height - 2 * margin];
    let scale = [0, 1].map((k) => room[k] / Math.max(high[k] - low[k], 1e-9));
    if (page.layouts[this.look.layout].equalAxes) scale = [Math.min(...scale), Math.min(...scale)];
    this.base = new Float32Array(place.length);
    for (let i = 0; i < place.length; i++) {
      const k = i % 2, centred = (place[i] - (low[k] + high[k]) / 2) * scale[k];
      this.base[i] = k ? this.height / 2 - centred : this.width / 2 + centred;
    }
    this.redraw();
  }

  x(i) { return this.base[2 * i] * this.view.zoom + this.view.x; }
  y(i) { return this.base[2 * i + 1] * this.view.zoom + this.view.y; }
  visible(i) { return this.look.part === 0 || graph.part[i] === this.look.part; }
  radius() {
    const plain = graph.size <= 600 ? 5 : graph.size <= 4000 ? 3.4 : graph.size <= 20000 ? 2.4 : 1.7;
    return Math.min(9, plain * Math.sqrt(this.view.zoom));
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
      this.mark();
    });
  }

  /** One small image per style, copied to every point with that style. */
  sprites(radius) {
    const ratio = window.devicePixelRatio || 1, size = Math.ceil(2 * (1.3 * radius + 1));
    return this.look.colouring.looks().map(({ colour, shape }) => {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = Math.ceil(size * ratio);
      const context = canvas.getContext("2d");
      context.scale(ratio, ratio);
      trace(context, shape, size / 2, size / 2, radius);
      context.fillStyle = colour;
      context.fill();
      if (radius >= 3) {
        context.strokeStyle = darkMode.matches ? "#00000080" : "#ffffffb0";
        context.lineWidth = 0.8;
        context.stroke();
      }
      return canvas;
    });
  }

  draw() {
    const context = this.points.getContext("2d"), radius = this.radius();
    const sprites = this.sprites(radius), size = Math.ceil(2 * (1.3 * radius + 1)), { selection, colouring } = this.look;
    context.clearRect(0, 0, this.width, this.height);
    for (const chosen of selection ? [false, true] : [true]) {
      context.globalAlpha = chosen ? 0.92 : 0.14;
      for (const i of this.order) {
        if (!this.visible(i) || (selection && Boolean(selection[i]) !== chosen)) continue;
        const x = this.x(i), y = this.y(i);
        if (x < -size || y < -size || x > this.width + size || y > this.height + size) continue;
        context.drawImage(sprites[colouring.of(i)], x - size / 2, y - size / 2, size, size);
      }
    }
    context.globalAlpha = 1;
  }

  mark() {
    const context = this.overlay.getContext("2d"), radius = this.radius();
    context.clearRect(0, 0, this.width, this.height);
    const ring = (i, extra, width) => {
      context.lineWidth = width;
      context.strokeStyle = strong();
      trace(context, 0, this.x(i), this.y(i), radius + extra);
      context.stroke();
    };
    if (this.look.current !== null) {
      context.strokeStyle = darkMode.matches ? "#ffffff66" : "#00000055";
      for (const j of neighboursOf(this.look.current)) {
        if (j >= graph.size || !this.visible(j)) continue;
        context.lineWidth = 1;
        context.beginPath();
        context.moveTo(this.x(this.look.current), this.y(this.look.current));
        context.lineTo(this.x(j), this.y(j));
        context.stroke();
      }
      ring(this.look.current, 4, 2.5);
    }
    if (this.cursor !== null) ring(this.cursor, 2, 1.5);
    if (this.brush) {
      const { x, y, toX, toY } = this.brush;
      context.fillStyle = darkMode.matches ? "#ffffff18" : "#00000012";
      context.strokeStyle = strong();
      context.lineWidth = 1;
      context.fillRect(x, y, toX - x, toY - y);
      context.strokeRect(x, y, toX - x, toY - y);
    }
    this.showTip();
  }

  showTip() {
    this.tip.hidden = this.cursor === null || Boolean(this.brush);
    if (this.tip.hidden) return;
    const i = this.cursor, x = this.x(i), y = this.y(i);
    this.tip.textContent = `${nodeTitle(i)}: ${className(graph.label[i])}, h ${fixed(graph.homophily[i], 2)}`;
    this.tip.style.left = `${Math.max(4, Math.min(x + 12, this.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${y + this.tip.offsetHeight + 16 > this.height ? y - this.tip.offsetHeight - 10 : y + 12}px`;
  }

  /** The visible node nearest to a place, not farther than `reach` pixels. */
  pick(x, y, reach) {
    let best = null, least = reach * reach;
    for (let i = 0; i < graph.size; i++) {
      const square = (this.x(i) - x) ** 2 + (this.y(i) - y) ** 2;
      if (square <= least && this.visible(i)) [best, least] = [i, square];
    }
    return best;
  }

  /** The next node in a direction: near, and not far to the side. */
  next(from, [right, down]) {
    let best = from, least = Infinity;
    for (let i = 0; i < graph.size; i++) {
      const dx = this.x(i) - this.x(from), dy = this.y(i) - this.y(from);
      const ahead = dx * right + dy * down, aside = Math.abs(dx * down) + Math.abs(dy * right);
      if (ahead > 0.01 && ahead >= aside && ahead + 2 * aside < least && this.visible(i)) [best, least] = [i, ahead + 2 * aside];
    }
    return best;
  }

  zoomBy(factor, x, y) {
    const zoom = Math.max(1, Math.min(200, this.view.zoom * factor)), change = zoom / this.view.zoom;
    const here = this.look.current, [cx, cy] = x !== undefined ? [x, y] : here !== null ? [this.x(here), this.y(here)] : [this.width / 2, this.height / 2];
    this.view = zoom === 1 ? { zoom, x: 0, y: 0 } : { zoom, x: cx - (cx - this.view.x) * change, y: cy - (cy - this.view.y) * change };
    if (x === undefined && here !== null) this.reveal(here, 0.25);
    this.redraw();
  }

  /** Move the map so that a node is well inside it. */
  reveal(i, border = 0.05) {
    if (this.view.zoom === 1) border = 0;
    const shift = (at, room) => Math.max(border * room - at, 0) || Math.min((1 - border) * room - at, 0);
    this.view.x += shift(this.x(i), this.width);
    this.view.y += shift(this.y(i), this.height);
    this.redraw();
  }

  fit() {
    this.view = { zoom: 1, x: 0, y: 0 };
    this.redraw();
  }

  at(event) {
    const box = this.overlay.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  listen() {
    const canvas = this.overlay;
    let start = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      const [x, y] = this.at(event);
      start = { x, y, moves: event.shiftKey, fromX: this.view.x, fromY: this.view.y };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = this.at(event);
      if (start && start.moves) Object.assign(this.view, { x: start.fromX + x - start.x, y: start.fromY + y - start.y });
      else if (start && (this.brush || Math.hypot(x - start.x, y - start.y) > 5)) this.brush = { x: start.x, y: start.y, toX: x, toY: y };
      else if (!start) {
        const under = this.pick(x, y, 12);
        if (under === this.cursor) return;
        this.cursor = under;
        this.mark();
        return;
      }
      if (start && start.moves) this.redraw();
      else this.mark();
    });
    canvas.addEventListener("pointerup", (event) => {
      const [x, y] = this.at(event), brush = this.brush, began = start;
      [start, this.brush] = [null, null];
      if (brush) this.on.brushed(this.inside(brush));
      else if (began && !began.moves) {
        const picked = this.pick(x, y, event.pointerType === "touch" ? 24 : 12);
        if (picked !== null) this.on.clicked(picked);
      }
      this.mark();
    });
    canvas.addEventListener("pointercancel", () => { [start, this.brush] = [null, null]; this.mark(); });
    for (const gone of ["pointerleave", "blur"]) canvas.addEventListener(gone, () => { this.cursor = null; this.mark(); });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls as always
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY / 300), ...this.at(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  inside({ x, y, toX, toY }) {
    const [left, right, top, bottom] = [Math.min(x, toX), Math.max(x, toX), Math.min(y, toY), Math.max(y, toY)];
    return (i) => this.visible(i) && this.x(i) >= left && this.x(i) <= right && this.y(i) >= top && this.y(i) <= bottom;
  }

  key(event) {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (way) {
      const from = this.cursor ?? this.look.current;
      this.cursor = from === null ? this.pick(this.width / 2, this.height / 2, Infinity) : this.next(from, way);
      if (this.cursor !== null) this.reveal(this.cursor);
    } else if (event.key === "Enter" && this.cursor !== null) this.on.clicked(this.cursor);
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.5);
    else if (event.key === "-") this.zoomBy(1 / 1.5);
    else if (event.key === "Escape") this.on.cleared();
    else return;
    event.preventDefault();
  }
}
