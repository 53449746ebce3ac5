// The memory map: addresses up, time to the right. What is in the persistent segment is there all the
// time; values of the transient segment come and go.

const segmentNames = {transient: "transient", persistent: "persistent", arena: "both, the arena"};

class MemoryChart extends Chart {
  /// `pieces` of the rectangles: numbers of pieces, or of what is persistent, which have -1 - number.
  load() {
    const {data, program, timeline} = this.page, {pieces, pieceCount} = program, {persistent} = data;
    const segment = this.page.segment, base = segment === "arena" ? data.persistent_bytes : 0;
    const held = segment === "transient" ? 0 : persistent.name.length;
    const living = segment === "persistent" ? 0 : pieceCount, count = held + living;
    const x0 = new Float64Array(count), x1 = new Float64Array(count);
    const y0 = new Float64Array(count), y1 = new Float64Array(count), kind = new Int16Array(count);
    this.held = held;
    let most = 0;
    for (let i = 0; i < held; ++i) {
      x1[i] = timeline.total;
      y0[i] = persistent.begin[i];
      y1[i] = persistent.end[i];
      kind[i] = data.tensors.category[persistent.tensor[i]];
      most = Math.max(most, y1[i]);
    }
    for (let i = 0; i < living; ++i) {
      const k = held + i;
      x0[k] = timeline.blockBegin[pieces.first[i]] ?? 0;
      x1[k] = timeline.blockEnd[pieces.last[i]] ?? timeline.total;
      y0[k] = base + pieces.begin[i];
      y1[k] = base + pieces.end[i];
      kind[k] = data.tensors.category[pieces.tensor[i]];
      most = Math.max(most, y1[k]);
    }
    this.setRectangles(x0, x1, y0, y1, kind);
    this.y.reset(most);
    this.showLegend();
  }

  showLegend() {
    const {data, program} = this.page, {pieces} = program, {block} = program.peak;
    const totals = data.categories.map(() => 0), {kind, y0, y1} = this.rectangles;
    for (let k = 0; k < kind.length; ++k) {
      const i = k - this.held;
      if (i < 0 || (pieces.first[i] <= block && block <= pieces.last[i])) totals[kind[k]] += y1[k] - y0[k];
    }
    // What is not there at the peak is in the legend as well.
    for (let k = this.held; k < kind.length; ++k) totals[kind[k]] = Math.max(totals[kind[k]], 1e-9);
    this.fillLegend("memory at the peak", data.categories, totals, this.page.marked("category"),
                    (kind) => this.page.markKind("category", kind), (bytes) => bytes < 1 ? "" : formats.bytes(bytes));
  }

  isPersistent(k) { return k < this.held; }
  /// The number of the piece, or of the persistent thing.
  number(k) { return k < this.held ? k : k - this.held; }
  bar(persistent, number) { return persistent ? (number < this.held ? number : -1) : this.segmentHas("transient") ? this.held + number : -1; }
  segmentHas(kind) { return this.page.segment === kind || this.page.segment === "arena"; }

  /// The part of the model where a value is made says more than its name.
  label(k) {
    const {data, program} = this.page, number = this.number(k), tensor = program.pieces.tensor?.[number];
    if (this.isPersistent(k)) return data.text(data.persistent.name[number]);
    return data.text(data.tensors.path[tensor]) || data.text(data.tensors.name[tensor]);
  }

  drawYAxis(brush) {
    const {left, width} = this.area;
    brush.beginPath();
    for (const value of this.y.ticks(this.area.height / 34, true)) {
      const y = this.toY(value);
      brush.moveTo(left, y);
      brush.lineTo(left + width, y);
      brush.fillText(formats.bytes(value), left - 5, y);
    }
    brush.stroke();
  }

  /// Where most bytes are live.
  drawExtras(brush) {
    const {program, timeline} = this.page;
    if (!this.segmentHas("transient") || program.blockCount === 0) return;
    const {top, height, left, width} = this.area, x = this.toX(timeline.blockBegin[program.peak.block]);
    const text = `peak ${formats.bytes(program.peak.bytes)} live`, room = letterWidth * text.length + 8;
    brush.strokeStyle = brush.fillStyle = this.colours.ink;
    brush.setLineDash([6, 4]);
    brush.beginPath();
    brush.moveTo(x, top);
    brush.lineTo(x, top + height);
    brush.stroke();
    brush.setLineDash([]);
    const from = x + room > left + width ? x - room : x + 2;
    brush.globalAlpha = 0.85;
    brush.fillStyle = getComputedStyle(document.body).backgroundColor;
    brush.fillRect(from, top + 2, room - 2, 15);
    brush.globalAlpha = 1;
    brush.fillStyle = this.colours.ink;
    brush.textBaseline = "middle";
    brush.fillText(text, from + 3, top + 10);
  }
}
