// Many rectangles that do not change, by place: a packed R-tree. They are sorted into columns by their
// middle in x, in a column by their middle in y, and every 16 neighbours share a node.

class RectangleIndex {
  constructor(x0, x1, y0, y1) {
    const count = x0.length, order = new Uint32Array(count);
    for (let i = 0; i < count; ++i) order[i] = i;
    const middleX = new Float64Array(count), middleY = new Float64Array(count);
    for (let i = 0; i < count; ++i) {
      middleX[i] = x0[i] + x1[i];
      middleY[i] = y0[i] + y1[i];
    }
    order.sort((a, b) => middleX[a] - middleX[b]);
    const column = 16 * Math.ceil(Math.sqrt(count / 16));
    for (let begin = 0; begin < count; begin += column)
      order.subarray(begin, begin + column).sort((a, b) => middleY[a] - middleY[b]);
    this.order = order;
    this.levels = []; // the lowest first: bounds of each 16 of the level below
    let bounds = {count, get: (i) => [x0[order[i]], x1[order[i]], y0[order[i]], y1[order[i]]]};
    this.leaf = bounds.get;
    do {
      bounds = RectangleIndex.above(bounds);
      this.levels.push(bounds);
    } while (bounds.count > 1);
  }

  static above(below) {
    const count = Math.ceil(below.count / 16), flat = new Float64Array(4 * count);
    for (let node = 0; node < count; ++node) {
      let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
      for (let i = 16 * node; i < Math.min(below.count, 16 * node + 16); ++i) {
        const [a, b, c, d] = below.get(i);
        x0 = Math.min(x0, a); x1 = Math.max(x1, b);
        y0 = Math.min(y0, c); y1 = Math.max(y1, d);
      }
      flat.set([x0, x1, y0, y1], 4 * node);
    }
    return {count, flat, get: (i) => flat.subarray(4 * i, 4 * i + 4)};
  }

  /// Calls visit(number) for each that touches the rectangle.
  search(x0, x1, y0, y1, visit) {
    const walk = (level, begin, end) => {
      for (let i = begin; i < end; ++i) {
        const [a, b, c, d] = level < 0 ? this.leaf(i) : this.levels[level].get(i);
        if (a > x1 || b < x0 || c > y1 || d < y0) continue;
        if (level < 0) visit(this.order[i]);
        else {
          const below = level === 0 ? this.order.length : this.levels[level - 1].count;
          walk(level - 1, 16 * i, Math.min(below, 16 * i + 16));
        }
      }
    };
    const top = this.levels.length - 1;
    walk(top, 0, this.levels[top].count);
  }
}
