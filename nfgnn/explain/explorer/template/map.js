const DIRECTIONS = [[-1, 0], [1, 0], [0, -1], [0, 1]]; // left, right, up, down

// The map: points on one canvas, marks on another above it. Brushing, clicking, zooming, and
// navigation with arrow keys.
class NodeMap {
  /**
   * `look` holds what is shown: layout, colouring, part, selection, emphasis (a test of nodes), the
   * current node, and the suggested one that is shown until the user chooses a node. `on` receives
   * the actions of the user.
   */
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

  /**
   * The range of one coordinate that the map shows: the 1st to the 99th percentile with a margin,
   * or everything if that is hardly more.
   */
  range(place, axis) {
    const values = new Float32Array(place.length / 2);
    for (let i = 0; i < values.length; i++) values[i] = place[2 * i + axis];
    values.sort();
    const quantile = (share) => values[Math.round(share * (values.length - 1))];
    const least = values[0], most = values[values.length - 1];
    const low = quantile(0.01), high = quantile(0.99), margin = 0.1 * (high - low);
    if (high - low < 1e-4 * (most - least)) return [least, most];
    return [Math.max(least, low - margin), Math.min(most, high + margin)];
  }

  /** Fit the chosen layout into the box; nodes outside of the frame are moved to its border. */
  place() {
    const place = graph.places[this.look.layout], margin = 22, border = 9;
    const ranges = [this.range(place, 0), this.range(place, 1)];
    const sides = [this.width, this.height];
    let scale = ranges.map(
      ([low, high], k) => (sides[k] - 2 * margin) / Math.max(high - low, 1e-9));
    if (page.layouts[this.look.layout].equalAxes) scale = [Math.min(...scale), Math.min(...scale)];
    this.base = new Float32Array(place.length);
    this.direction = new Int8Array(graph.size); // outside of the frame: index of DIRECTIONS, plus 1
    this.outliers = 0;
    for (let i = 0; i < graph.size; i++) {
      for (const k of [0, 1]) {
        const [low, high] = ranges[k], centred = (place[2 * i + k] - (low + high) / 2) * scale[k];
        const at = sides[k] / 2 + (k ? -centred : centred);
        const inside = Math.max(border, Math.min(at, sides[k] - border));
        if (inside !== at) this.direction[i] = 1 + 2 * k + Number(at > inside);
        this.base[2 * i + k] = inside;
      }
      if (this.direction[i]) this.outliers += 1;
    }
    this.redraw();
  }

  x(i) { return this.base[2 * i] * this.view.zoom + this.view.x; }
  y(i) { return this.base[2 * i + 1] * this.view.zoom + this.view.y; }
  visible(i) { return this.look.part === 0 || graph.part[i] === this.look.part; }
  radius() {
    const sizes = [[600, 5], [4000, 3.4], [20000, 2.4], [80000, 1.6], [Infinity, 1.1]];
    const plain = sizes.find(([most]) => graph.size <= most)[1];
    const room = Math.sqrt((this.width * this.height) / 400000); // small on a phone
    return Math.min(9, plain * Math.sqrt(this.view.zoom) * Math.max(0.6, Math.min(1, room)));
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

  /** One small image per look, copied to every point with that look. */
  sprites(looks, radius) {
    const ratio = window.devicePixelRatio || 1, size = Math.ceil(2 * (1.3 * radius + 1));
    return looks.map((look) => {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = Math.ceil(size * ratio);
      const context = canvas.getContext("2d");
      context.scale(ratio, ratio);
      paint(context, look, size / 2, size / 2, radius);
      if (radius >= 3 && look.shape < HOLLOW) {
        context.strokeStyle = darkMode.matches ? "#00000080" : "#ffffffb0";
        context.lineWidth = 0.8;
        context.stroke();
      }
      return canvas;
    });
  }

  /** From the bottom to the top: greyed out, not selected, ordinary, in front; -1 if hidden. */
  layer(i, looks) {
    const { selection, emphasis, colouring } = this.look;
    if (!this.visible(i)) return -1;
    if (emphasis && !emphasis(i)) return 0;
    if (selection && !selection[i]) return 1;
    return looks[colouring.of(i)].front ? 3 : 2;
  }

  draw() {
    const context = this.points.getContext("2d"), radius = this.radius();
    const { colouring } = this.look, looks = colouring.looks(), muted = looks.length;
    looks.push({ colour: faint(), shape: 0 });
    const sprites = this.sprites(looks, radius), size = Math.ceil(2 * (1.3 * radius + 1));
    const layers = Int8Array.from({ length: graph.size }, (_, i) => this.layer(i, looks));
    context.clearRect(0, 0, this.width, this.height);
    [0.55, 0.14, 0.92, 0.95].forEach((alpha, layer) => {
      if (!layers.includes(layer)) return;
      context.globalAlpha = alpha;
      for (const i of this.order) {
        if (layers[i] !== layer) continue;
        const x = this.x(i), y = this.y(i), style = layer ? colouring.of(i) : muted;
        if (x < -size || y < -size || x > this.width + size || y > this.height + size) continue;
        if (this.direction[i]) this.arrow(context, i, looks[style].colour);
        else context.drawImage(sprites[style], x - size / 2, y - size / 2, size, size);
      }
    });
    context.globalAlpha = 1;
  }

  /** A triangle at the border that points to a node outside of the frame. */
  arrow(context, i, colour) {
    const [dx, dy] = DIRECTIONS[this.direction[i] - 1], x = this.x(i), y = this.y(i), r = 5;
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(x + r * dx, y + r * dy);
    context.lineTo(x - r * (dx - dy), y - r * (dy - dx));
    context.lineTo(x - r * (dx + dy), y - r * (dy + dx));
    context.fill();
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
    const shown = this.look.current ?? this.look.suggested;
    if (shown !== null) {
      context.strokeStyle = darkMode.matches ? "#ffffff66" : "#00000055";
      for (const j of neighboursOf(shown)) {
        if (j >= graph.size || !this.visible(j)) continue;
        context.lineWidth = 1;
        context.beginPath();
        context.moveTo(this.x(shown), this.y(shown));
        context.lineTo(this.x(j), this.y(j));
        context.stroke();
      }
      ring(shown, 4, 2.5);
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
    const beyond = this.direction[i] ? ", outside of the frame" : "";
    const facts = `${className(graph.label[i])}, h ${fixed(graph.homophily[i], 2)}`;
    this.tip.textContent = `${nodeTitle(i)}: ${facts}${beyond}`;
    const { offsetWidth, offsetHeight } = this.tip, below = y + offsetHeight + 16 <= this.height;
    this.tip.style.left = `${Math.max(4, Math.min(x + 12, this.width - offsetWidth - 4))}px`;
    this.tip.style.top = `${below ? y + 12 : y - offsetHeight - 10}px`;
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
      const far = ahead + 2 * aside;
      const fits = ahead > 0.01 && ahead >= aside && far < least;
      if (fits && this.visible(i)) [best, least] = [i, far];
    }
    return best;
  }

  zoomBy(factor, x, y) {
    const zoom = Math.max(1, Math.min(200, this.view.zoom * factor));
    const change = zoom / this.view.zoom;
    const here = this.look.current ?? this.look.suggested;
    let [cx, cy] = [this.width / 2, this.height / 2];
    if (x !== undefined) [cx, cy] = [x, y];
    else if (here !== null) [cx, cy] = [this.x(here), this.y(here)];
    this.view = { zoom, x: 0, y: 0, ...(zoom === 1 ? {} : {
      x: cx - (cx - this.view.x) * change, y: cy - (cy - this.view.y) * change,
    }) };
    if (x === undefined && here !== null) this.reveal(here, 0.25);
    this.redraw();
  }

  /** Move the map so that a node is well inside it. */
  reveal(i, border = 0.05) {
    if (this.view.zoom === 1) border = 0;
    const shift = (at, room) => (
      Math.max(border * room - at, 0) || Math.min((1 - border) * room - at, 0));
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
    const touches = new Map(); // positions of the fingers on the map
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      const [x, y] = this.at(event);
      touches.set(event.pointerId, [x, y]);
      if (touches.size > 1) {
        start = this.brush = null;
        this.mark();
        return;
      }
      start = { x, y, moves: event.shiftKey, fromX: this.view.x, fromY: this.view.y };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = this.at(event);
      if (touches.size > 1) {
        this.pinch(touches, event.pointerId, [x, y]);
        return;
      }
      if (start && start.moves) {
        this.view.x = start.fromX + x - start.x;
        this.view.y = start.fromY + y - start.y;
      } else if (start && (this.brush || Math.hypot(x - start.x, y - start.y) > 5)) {
        this.brush = { x: start.x, y: start.y, toX: x, toY: y };
      } else if (!start) {
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
      touches.delete(event.pointerId);
      [start, this.brush] = [null, null];
      if (brush) this.on.brushed(this.inside(brush));
      else if (began && !began.moves) {
        const picked = this.pick(x, y, event.pointerType === "touch" ? 24 : 12);
        if (picked !== null) this.on.clicked(picked);
      }
      this.mark();
    });
    canvas.addEventListener("pointercancel", (event) => {
      touches.delete(event.pointerId);
      start = this.brush = null;
      this.mark();
    });
    for (const gone of ["pointerleave", "blur"]) {
      canvas.addEventListener(gone, () => { this.cursor = null; this.mark(); });
    }
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls as always
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY / 300), ...this.at(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /** Zoom and move the map with two fingers, one of which has moved. */
  pinch(touches, moved, to) {
    const gesture = () => {
      const [[ax, ay], [bx, by]] = [...touches.values()];
      return { x: (ax + bx) / 2, y: (ay + by) / 2, distance: Math.hypot(ax - bx, ay - by) };
    };
    if (!touches.has(moved)) return;
    const before = gesture();
    touches.set(moved, to);
    const after = gesture();
    this.view.x += after.x - before.x;
    this.view.y += after.y - before.y;
    this.zoomBy(after.distance / Math.max(before.distance, 1), after.x, after.y);
  }

  inside({ x, y, toX, toY }) {
    const between = (value, a, b) => value >= Math.min(a, b) && value <= Math.max(a, b);
    return (i) => this.visible(i) && between(this.x(i), x, toX) && between(this.y(i), y, toY);
  }

  key(event) {
    const arrows = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
    const way = DIRECTIONS[arrows.indexOf(event.key)];
    if (way) {
      const from = this.cursor ?? this.look.current;
      this.cursor = from === null
        ? this.pick(this.width / 2, this.height / 2, Infinity) : this.next(from, way);
      if (this.cursor !== null) this.reveal(this.cursor);
    } else if (event.key === "Enter" && this.cursor !== null) this.on.clicked(this.cursor);
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.5);
    else if (event.key === "-") this.zoomBy(1 / 1.5);
    else if (event.key === "Escape") this.on.cleared();
    else return;
    event.preventDefault();
  }
}
