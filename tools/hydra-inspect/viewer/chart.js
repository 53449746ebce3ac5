// Rectangles on a canvas over two axes: what is drawn, and what is under the pointer. A second canvas
// above has what follows the pointer, so that the first is drawn only when the view changes.

const margins = {left: 74, right: 8, top: 4, bottom: 20};
const font = '11px ui-monospace, "DejaVu Sans Mono", monospace', letterWidth = 6.7;

/// Paints of the kinds of a chart: colour and texture by number. `numbers` has that of each kind.
class Paints {
  constructor(palette, textures, numbers) {
    this.palette = palette;
    this.textures = textures;
    this.numbers = numbers;
    this.known = [];
  }

  static luminance(colour) {
    const part = (at) => {
      const value = parseInt(colour.slice(at, at + 2), 16) / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  }

  /// As ImageData holds it, on little-endian machines.
  static pixel(colour) {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  }

  of(kind) {
    if (kind < 0) return {fill: "#8888", text: null, pixel: Paints.pixel("#888888") & 0x88ffffff};
    const number = this.numbers[kind], {palette, textures} = this;
    return this.known[kind] ??= this.make(palette[number % palette.length],
                                          textures[Math.floor(number / palette.length) % textures.length]);
  }

  make(colour, texture) {
    const text = Paints.luminance(colour) > 0.179 ? "#000000" : "#ffffff";
    const pixel = Paints.pixel(colour);
    if (texture === "plain") return {fill: colour, text, pixel};
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const brush = tile.getContext("2d");
    brush.fillStyle = colour;
    brush.fillRect(0, 0, 8, 8);
    brush.fillStyle = brush.strokeStyle = text === "#000000" ? "#fff9" : "#0009";
    if (texture === "dots") {
      for (const [x, y] of [[1, 1], [5, 5]]) brush.fillRect(x, y, 2, 2);
    } else {
      brush.lineWidth = 2;
      for (const shift of [-8, 0, 8]) {
        brush.beginPath();
        brush.moveTo(shift, 8);
        brush.lineTo(shift + 8, 0);
        brush.stroke();
      }
    }
    return {fill: brush.createPattern(tile, "repeat"), text: null, pixel}; // text on textures is hard to read
  }
}

/// Rectangles that are narrower than some pixels, as pixels: of a hundred thousand, each is a few writes.
class Dust {
  constructor(canvas) {
    this.canvas = document.createElement("canvas");
    this.canvas.width = Math.max(canvas.width, 1);
    this.canvas.height = Math.max(canvas.height, 1);
    this.brush = this.canvas.getContext("2d");
    this.image = this.brush.createImageData(this.canvas.width, this.canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.scale = window.devicePixelRatio || 1;
  }

  /// From a to b, from c to d, in pixels of CSS; at least one pixel each way.
  add(colour, a, b, c, d) {
    const {width, height} = this.canvas, {scale, pixels} = this;
    const left = Math.max(Math.round(a * scale), 0), right = Math.min(Math.max(Math.round(b * scale), left + 1), width);
    const top = Math.max(Math.round(c * scale), 0), bottom = Math.min(Math.max(Math.round(d * scale), top + 1), height);
    for (let y = top; y < bottom; ++y)
      for (let x = left; x < right; ++x) pixels[y * width + x] = colour;
  }

  /// Onto a canvas of the same size.
  draw(brush) {
    this.brush.putImageData(this.image, 0, 0);
    brush.drawImage(this.canvas, 0, 0, this.canvas.width / this.scale, this.canvas.height / this.scale);
  }
}

class Chart {
  /// `page` has the shared time axis, the marks, and is told what is under the pointer.
  constructor(page, element, paints) {
    this.page = page;
    this.plot = element.querySelector(".plot");
    [this.canvas, this.over] = this.plot.querySelectorAll("canvas");
    this.legend = element.querySelector(".legend");
    this.paints = paints;
    this.y = new AxisRange(1);
    this.setRectangles([], [], [], [], []);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.plot);
  }

  setRectangles(x0, x1, y0, y1, kind) {
    this.rectangles = {x0, x1, y0, y1, kind};
    this.index = x0.length > 0 ? new RectangleIndex(x0, x1, y0, y1) : null;
  }

  //---- Between the axes and the canvas, in pixels of CSS

  get area() {
    return {left: margins.left, top: margins.top,
            width: Math.max(this.plot.clientWidth - margins.left - margins.right, 1),
            height: Math.max(this.plot.clientHeight - margins.top - margins.bottom, 1)};
  }
  toX(value) { const {left, width} = this.area; return left + (value - this.page.time.low) / this.page.time.size * width; }
  toY(value) { const {top, height} = this.area; return top + (1 - (value - this.y.low) / this.y.size) * height; }
  fromX(pixel) { const {left, width} = this.area; return this.page.time.low + (pixel - left) / width * this.page.time.size; }
  fromY(pixel) { const {top, height} = this.area; return this.y.low + (1 - (pixel - top) / height) * this.y.size; }

  /// The rectangle at a place of the plot: the smallest around it, else one within 3 pixels; -1: none.
  hit(px, py) {
    if (!this.index) return -1;
    const {x0, x1, y0, y1} = this.rectangles;
    const at = [this.fromX(px), this.fromY(py)], near = [this.fromX(px + 3) - at[0], this.fromY(py - 3) - at[1]];
    let best = -1, bestRank = Infinity;
    this.index.search(at[0] - near[0], at[0] + near[0], at[1] - near[1], at[1] + near[1], (i) => {
      const outside = Math.max(x0[i] - at[0], at[0] - x1[i], 0) / near[0] + Math.max(y0[i] - at[1], at[1] - y1[i], 0) / near[1];
      const size = (x1[i] - x0[i]) / this.page.time.total * (y1[i] - y0[i]) / this.y.total;
      const rank = outside > 0 ? 10 + outside : size;
      if (rank < bestRank) { best = i; bestRank = rank; }
    });
    return best;
  }

  //---- Drawing

  resize() {
    const scale = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.over]) {
      canvas.width = Math.round(this.plot.clientWidth * scale);
      canvas.height = Math.round(this.plot.clientHeight * scale);
    }
    this.draw();
  }

  brushOf(canvas) {
    const brush = canvas.getContext("2d"), scale = window.devicePixelRatio || 1;
    brush.setTransform(scale, 0, 0, scale, 0, 0);
    brush.clearRect(0, 0, this.plot.clientWidth, this.plot.clientHeight);
    brush.font = font;
    return brush;
  }

  get colours() {
    const style = getComputedStyle(this.canvas);
    return {ink: style.color, grid: style.borderTopColor, accent: style.outlineColor, muted: style.textDecorationColor};
  }

  draw() {
    const brush = this.brushOf(this.canvas), {left, top, width, height} = this.area;
    this.drawAxes(brush);
    brush.save();
    brush.beginPath();
    brush.rect(left, top, width, height);
    brush.clip();
    this.drawRectangles(brush);
    this.drawExtras(brush);
    brush.restore();
    this.drawOver();
  }

  drawExtras() {}

  drawRectangles(brush) {
    if (!this.index) return;
    const {time} = this.page, marks = this.page.marksOf(this), kinds = new Map();
    this.index.search(time.low, time.high, this.y.low, this.y.high, (i) => {
      const key = 2 * this.rectangles.kind[i] + (marks && !marks[i] ? 1 : 0);
      if (!kinds.has(key)) kinds.set(key, []);
      kinds.get(key).push(i);
    });
    // What is not marked first.
    for (const isPale of [1, 0]) {
      const keys = [...kinds.keys()].filter((key) => (key & 1) === isPale).sort((a, b) => a - b);
      if (keys.length === 0) continue;
      const dust = new Dust(this.canvas);
      brush.globalAlpha = isPale ? 0.18 : 1;
      for (const key of keys) this.drawKind(brush, dust, kinds.get(key), this.paints.of(key >> 1), isPale);
      dust.draw(brush);
    }
    brush.globalAlpha = 1;
  }

  drawKind(brush, dust, list, paint, isPale) {
    const {x0, x1, y0, y1} = this.rectangles, {left, top, width, height} = this.area;
    const {low, size} = this.page.time, {low: lowY, size: sizeY} = this.y;
    const labels = [];
    brush.fillStyle = paint.fill;
    for (const i of list) {
      const a = Math.max(left + (x0[i] - low) / size * width, left - 2);
      const b = Math.min(left + (x1[i] - low) / size * width, left + width + 2);
      const c = Math.max(top + (1 - (y1[i] - lowY) / sizeY) * height, top - 2);
      const d = Math.min(top + (1 - (y0[i] - lowY) / sizeY) * height, top + height + 2);
      const w = b - a, h = d - c;
      if (w < 3) {
        dust.add(paint.pixel, a, b, c, h > 4 ? d - 1 : d);
        continue;
      }
      brush.fillRect(a, c, w > 4 ? w - 1 : w, h > 4 ? h - 1 : Math.max(h, 0.7));
      if (w > 40 && h > 12 && paint.text && !isPale) labels.push([i, a, c, w, h]);
    }
    brush.fillStyle = paint.text;
    brush.textBaseline = "middle";
    for (const [i, a, c, w, h] of labels) {
      const from = Math.max(a, left), room = Math.floor((Math.min(a + w, left + width) - from - 6) / letterWidth);
      if (room > 3) brush.fillText(this.label(i).slice(0, room), from + 3, c + h / 2);
    }
  }

  drawAxes(brush) {
    const {left, top, width, height} = this.area, {ink, grid, muted} = this.colours;
    brush.fillStyle = muted;
    brush.strokeStyle = grid;
    brush.textBaseline = "top";
    brush.textAlign = "center";
    brush.beginPath();
    for (const value of this.page.time.ticks(width / 110, false)) {
      const x = this.toX(value);
      brush.moveTo(x, top);
      brush.lineTo(x, top + height);
      const text = this.page.timeline.axis === "steps" ? formats.count(value) : formats.time(value);
      if (x > left + 20 && x < left + width - 20) brush.fillText(text, x, top + height + 4);
    }
    brush.stroke();
    brush.textAlign = "right";
    brush.textBaseline = "middle";
    this.drawYAxis(brush, ink);
    brush.textAlign = "left";
  }

  drawOver() {
    const brush = this.brushOf(this.over), {left, top, width, height} = this.area, {ink, accent} = this.colours;
    brush.save();
    brush.beginPath();
    brush.rect(left - 2, top - 2, width + 4, height + 4);
    brush.clip();
    const cursor = this.page.cursor;
    if (cursor !== null) {
      brush.strokeStyle = ink;
      brush.globalAlpha = 0.5;
      brush.setLineDash([2, 3]);
      brush.beginPath();
      brush.moveTo(this.toX(cursor), top);
      brush.lineTo(this.toX(cursor), top + height);
      brush.stroke();
      brush.setLineDash([]);
      brush.globalAlpha = 1;
    }
    const {related, selected, hovered} = this.page.outlinesOf(this);
    for (const [list, lineWidth, colour] of [[related, 1.5, accent], [selected, 3, accent], [hovered, 2, ink]]) {
      brush.strokeStyle = colour;
      brush.lineWidth = lineWidth;
      for (const i of list) this.outline(brush, i);
    }
    brush.restore();
  }

  outline(brush, i) {
    const {x0, x1, y0, y1} = this.rectangles;
    const a = Math.max(this.toX(x0[i]), -9), b = Math.min(this.toX(x1[i]), this.plot.clientWidth + 9);
    const c = Math.max(this.toY(y1[i]), -9), d = Math.min(this.toY(y0[i]), this.plot.clientHeight + 9);
    if (b > a - 1 && d > c - 1) brush.strokeRect(a, c, Math.max(b - a - 1, 1), Math.max(d - c - 1, 1));
  }

  /// Buttons that mark what is of a kind.
  fillLegend(title, names, totals, pressed, press, format) {
    const parts = names.map((name, kind) => ({name, kind, total: totals[kind]})).filter((one) => one.total > 0);
    parts.sort((a, b) => b.total - a.total);
    const heading = document.createElement("b");
    heading.textContent = title;
    this.legend.replaceChildren(heading, ...parts.map(({name, kind, total}) => {
      const button = document.createElement("button"), chip = document.createElement("canvas");
      chip.width = chip.height = 24;
      const brush = chip.getContext("2d");
      brush.fillStyle = this.paints.of(kind).fill;
      brush.fillRect(0, 0, 24, 24);
      button.append(chip, `${name} ${format(total)}`);
      button.setAttribute("aria-pressed", pressed === kind);
      button.onclick = () => press(kind);
      return button;
    }));
  }

  //---- Pointer

  place(event) {
    const bounds = this.plot.getBoundingClientRect();
    return [event.clientX - bounds.left, event.clientY - bounds.top];
  }

  listen() {
    let drag = null;
    this.plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      drag = {x: event.clientX, y: event.clientY, moved: false};
      this.plot.setPointerCapture(event.pointerId);
    });
    this.plot.addEventListener("pointermove", (event) => {
      if (!drag) return this.page.hover(this, this.hit(...this.place(event)), event, this.fromX(this.place(event)[0]));
      const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      this.page.time.pan(-dx / this.area.width);
      this.y.pan(dy / this.area.height);
      drag = {x: event.clientX, y: event.clientY, moved: true};
      this.page.redraw();
    });
    this.plot.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) this.page.pick(this, this.hit(...this.place(event)));
      drag = null;
    });
    this.plot.addEventListener("pointercancel", () => { drag = null; });
    this.plot.addEventListener("pointerleave", () => this.page.hover(this, -1, null, null));
    this.plot.addEventListener("dblclick", (event) => this.zoomTo(this.hit(...this.place(event))));
    this.plot.addEventListener("wheel", (event) => {
      event.preventDefault();
      const delta = (event.deltaY || event.deltaX) * (event.deltaMode === 1 ? 30 : 1);
      const factor = Math.exp(Math.max(-1, Math.min(1, delta * 0.002))), [px, py] = this.place(event);
      if (event.shiftKey) this.y.zoom(factor, this.fromY(py));
      else this.page.time.zoom(factor, this.fromX(px));
      this.page.redraw();
    }, {passive: false});
  }

  zoomTo(i) {
    if (i < 0) return;
    const {x0, x1, y0, y1} = this.rectangles, width = x1[i] - x0[i], height = y1[i] - y0[i];
    this.page.time.show(x0[i] - 0.2 * width, x1[i] + 0.2 * width);
    this.y.show(y0[i] - 0.5 * height, y1[i] + 0.5 * height);
    this.page.redraw();
  }
}
