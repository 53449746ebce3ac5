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
    this.sides = {x0, x1, y0, y1};
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
    const {order, sides} = this;
    const walk = (level, begin, end) => {
      if (level < 0) {
        for (let i = begin; i < end; ++i) {
          const k = order[i];
          if (sides.x0[k] <= x1 && sides.x1[k] >= x0 && sides.y0[k] <= y1 && sides.y1[k] >= y0) visit(k);
        }
        return;
      }
      const {flat} = this.levels[level], below = level === 0 ? order.length : this.levels[level - 1].count;
      for (let i = begin; i < end; ++i)
        if (flat[4 * i] <= x1 && flat[4 * i + 1] >= x0 && flat[4 * i + 2] <= y1 && flat[4 * i + 3] >= y0)
          walk(level - 1, 16 * i, Math.min(below, 16 * i + 16));
    };
    const top = this.levels.length - 1;
    walk(top, 0, this.levels[top].count);
  }
}
