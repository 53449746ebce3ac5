// A part of an axis that is shown, and round numbers on it.

class AxisRange {
  constructor(total) { this.reset(total); }

  reset(total) {
    this.total = total > 0 ? total : 1;
    this.low = 0;
    this.high = this.total;
  }

  get size() { return this.high - this.low; }

  /// Shows [low, high], moved and cut so that it is on the axis.
  show(low, high) {
    const size = Math.min(Math.max(high - low, this.total * 1e-7), this.total);
    const middle = (low + high) / 2;
    this.low = Math.min(Math.max(middle - size / 2, 0), this.total - size);
    this.high = this.low + size;
  }

  pan(part) { this.show(this.low + part * this.size, this.high + part * this.size); }

  /// Smaller than 1: a smaller part; what is at `at` stays where it is.
  zoom(factor, at = (this.low + this.high) / 2) {
    factor = Math.min(factor, this.total / this.size);
    this.show(at - (at - this.low) * factor, at + (this.high - at) * factor);
  }

  /// Shows [low, high] with some room, if it is not to be seen well now.
  reveal(low, high) {
    const seen = Math.min(high, this.high) - Math.max(low, this.low);
    if (seen >= 0.999 * (high - low) && high - low > this.size / 200) return;
    const size = Math.max(8 * (high - low), Math.min(this.size, 40 * (high - low)));
    this.show((low + high - size) / 2, (low + high + size) / 2);
  }

  /// About `count` round numbers; of bytes they are round in binary.
  ticks(count, binary) {
    const rough = this.size / Math.max(count, 1);
    let step;
    if (binary) {
      step = 2 ** Math.ceil(Math.log2(rough));
    } else {
      const ten = 10 ** Math.floor(Math.log10(rough));
      step = ten * [1, 2, 5, 10].find((factor) => ten * factor >= rough * 0.999);
    }
    const list = [];
    for (let value = Math.ceil(this.low / step) * step; value <= this.high; value += step) list.push(value);
    return list;
  }
}
