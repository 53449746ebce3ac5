// Makes the files of test/text/goldens: lines of many scripts, small tokenizers, and for each of them
// and each line what Hugging Face's `tokenizers` makes of it.
//
//   npm install tokenizers@0.23.2 && NODE_PATH=node_modules node test/text/make-goldens.js
//
// NAME.golden has a line for each line of lines.json: FNV-1a (32 bits folded to 16, hexadecimal) of its ids with
// special tokens around, as decimal numbers with spaces between, of a zero byte, of the decoded text,
// of another zero, and of the text with special tokens shown.
'use strict';
const fs = require('fs');
const path = require('path');
const {Tokenizer} = require('tokenizers');

const root = path.join(__dirname, '..', '..');
const out = path.join(__dirname, 'goldens');

// ---- Numbers that are random and always the same.
let state = 12345;
function random(n) {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % n;
}
const pick = list => list[random(list.length)];
const repeat = (n, make) => Array.from({length: n}, make).join('');

// ---- Lines.
const shakespeare = fs.readFileSync(path.join(root, 'data', 'tinyshakespeare.txt'), 'utf8').slice(0, 60000);
const range = (first, last) => Array.from({length: last - first + 1}, (_, i) => String.fromCodePoint(first + i));
const scripts = [
  range(0x20, 0x7e), range(0xa1, 0x17f), range(0x250, 0x2af), range(0x391, 0x3c9), range(0x410, 0x451),
  range(0x531, 0x556), range(0x5d0, 0x5ea), range(0x621, 0x652), range(0x904, 0x94d), range(0x985, 0x9b9),
  range(0xb85, 0xbb9), range(0xe01, 0xe3a), range(0xe40, 0xe4e), range(0x10d0, 0x10f0), range(0x1100, 0x11c2),
  range(0x1200, 0x1248), range(0x1780, 0x17b3), range(0x1e00, 0x1eff), range(0x2010, 0x2027), range(0x2070, 0x209c),
  range(0x20a0, 0x20bf), range(0x2150, 0x2188), range(0x2190, 0x21ff), range(0x2200, 0x22ff), range(0x2460, 0x24ff),
  range(0x3041, 0x3096), range(0x30a1, 0x30fa), range(0x4e00, 0x4eff), range(0x9e00, 0x9eff), range(0xac00, 0xacff),
  range(0xf900, 0xf9ff), range(0xfb00, 0xfb06), range(0xff01, 0xff9d), range(0x10330, 0x1034a), range(0x1d400, 0x1d454),
  range(0x20000, 0x200ff)].map(list => list.filter(c => /^[^\p{Cn}\p{Co}]$/u.test(c)));
const marks = range(0x300, 0x36f);
const emoji = [...range(0x1f300, 0x1f5ff), ...range(0x1f600, 0x1f64f), ...range(0x2600, 0x26ff)];
const spaces = [' ', '  ', '   ', '\t', '\n', '\r', '\r\n', '\n\n', '\u00a0', '\u2003', '\u3000', '\u200b', '\u180e',
  '\u0085', '\u2028', '\x0b', '\x0c', '\ufeff', '\u1680'];
const words = ['a', 'word', 'Hello', "don't", "I'LL", 'x1', '123', '12345678', '3.14', '!!', '...', '#', '_', '日本', 'привет',
  'é', 'e\u0301', 'foo_bar', 'CamelCase', "'S", 'ſ', "'ſ", 'İstanbul', 'ΣΑΣ', 'ﬁne', 'Ⅷ', '①', '½', '㍿', '각', 'ᄀ'];
const code = ['for (int i = 0; i < n; ++i) {', '\tx[i] = y[i] * 2.5e-3f;', 'def f(self, *args, **kwargs):', '    return None  # done',
  '<div class="a">&nbsp;</div>', '{"key": [1, 2.0, null]}', 'https://example.org/?q=a%20b&r=1#top', 'SELECT * FROM t WHERE a <> \'b\';',
  '#include <vector>', '$HOME/.config/**/*.json', '\\begin{align} \\alpha^2 &= \\frac{1}{2} \\end{align}', '0xDEADBEEF 1_000_000 1e10'];
const specials = ['<|endoftext|>', '<s>', '</s>', '<unk>', '<pad>', '[CLS]', '[SEP]', '[MASK]', '[UNK]', '<mask>', '<0x0A>', '<0xE2>',
  '▁', '▁▁', 'Ġ', '##ing', '</w>', '<|tool|>', 'New York', '\n\n', 'ALONE'];
const lines = ['', ' ', '\n', '  leading and trailing  '];
for (const line of shakespeare.slice(0, 24000).split('\n'))
  if (line && random(2) === 0)
    lines.push(line);
for (let i = 0; i < 8; ++i)
  lines.push(shakespeare.slice(i * 1500, i * 1500 + 400));
for (let i = 0; i < 360; ++i)
  lines.push(repeat(1 + random(14), () => pick(scripts[i % scripts.length]) + (random(5) ? '' : pick([' ', '  ', '.', 'a', '1', "'s", '-']))));
for (let i = 0; i < 80; ++i)
  lines.push(repeat(1 + random(10), () => pick(pick(scripts))));
for (let i = 0; i < 70; ++i)
  lines.push(repeat(1 + random(8), () => pick([...'aeiouAEIOUncsz', 'и', 'ก', 'あ', '각']) + repeat(pick([0, 1, 1, 2, 3]), () => pick(marks))));
for (let i = 0; i < 70; ++i)
  lines.push(repeat(1 + random(5), () => pick(emoji) + pick(['', '\u200d' + pick(emoji), '\ufe0f', '\u{1f3fd}', ' text ', '\u{1f1e9}\u{1f1ea}'])));
for (let i = 0; i < 160; ++i)
  lines.push(repeat(1 + random(8), () => repeat(random(4), () => pick(spaces)) + pick(words)));
for (let i = 0; i < 50; ++i)
  lines.push(repeat(1 + random(16), () => (random(3) ? pick([...'abc XYZ.,09\x7f\u009f\u00ad']) : String.fromCharCode(random(32)))));
for (let i = 0; i < 150; ++i)
  lines.push(repeat(1 + random(6), () => pick(specials) + pick(['', ' ', '  ', '\n', 'a', 'é', '.', 'word'])));
lines.push(...code);
for (const part of ['a', 'ab ', ' ', '\n', 'é', '日', 'x1 ', '. ', '\t ', '0'])
  lines.push(part.repeat(90));

// ---- Vocabularies, learnt from Shakespeare and from some of the lines.
const corpus = shakespeare + lines.filter((_, i) => i % 5 === 0).join('\n');
const utf8 = text => [...Buffer.from(text, 'utf8')];
const byteCharacters = (() => {
  const table = [];
  let next = 0x100;
  for (let b = 0; b < 256; ++b)
    table.push(String.fromCodePoint((b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae ? b : next++));
  return table;
})();
const byteLevel = text => utf8(text).map(b => byteCharacters[b]).join('');
const byteNames = Array.from({length: 256}, (_, b) => `<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`);

/// Words and how often they are there.
function count(list) {
  const counts = new Map();
  for (const word of list)
    counts.set(word, (counts.get(word) || 0) + 1);
  return counts;
}

/// Merges of the most frequent pairs. `spell`: the first symbols of a word.
function learnMerges(list, spell, number, join = (a, b) => a + b) {
  const words = [...count(list)].map(([word, n]) => [spell(word), n]);
  const merges = [];
  while (merges.length < number) {
    const pairs = new Map();
    for (const [symbols, n] of words)
      for (let i = 0; i + 1 < symbols.length; ++i) {
        const key = symbols[i] + '\u0000' + symbols[i + 1];
        pairs.set(key, (pairs.get(key) || 0) + n);
      }
    let best = null;
    for (const [key, n] of pairs)
      if (n > 1 && (!best || n > best[1] || (n === best[1] && key < best[0])))
        best = [key, n];
    if (!best)
      break;
    const [a, b] = best[0].split('\u0000');
    merges.push([a, b]);
    for (const entry of words)
      for (let i = 0; i + 1 < entry[0].length; ++i)
        if (entry[0][i] === a && entry[0][i + 1] === b)
          entry[0].splice(i, 2, join(a, b));
  }
  return merges;
}

function ids(names, first = 0) {
  const vocabulary = {};
  let next = first;
  for (const name of names)
    if (!(name in vocabulary))
      vocabulary[name] = next++;
  return vocabulary;
}

const added = (id, content, flags = {}) => ({id, content, single_word: false, lstrip: false, rstrip: false, normalized: false,
  special: true, ...flags});
const split = (pattern, behavior = 'Isolated', invert = false) => ({type: 'Split', pattern, behavior, invert});
const llama3 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const gpt2 = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;
const bytes = {type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false};
const sequence = (key, list) => ({type: 'Sequence', [key]: list});
const template = (before, behind, tokens) => ({type: 'TemplateProcessing',
  single: [...before.map(id => ({SpecialToken: {id, type_id: 0}})), {Sequence: {id: 'A', type_id: 0}}, ...behind.map(id => ({SpecialToken: {id, type_id: 0}}))],
  pair: [{Sequence: {id: 'A', type_id: 0}}, {Sequence: {id: 'B', type_id: 1}}],
  special_tokens: Object.fromEntries(Object.entries(tokens).map(([id, number]) => [id, {id, ids: [number], tokens: [id]}]))});
const bpe = more => ({type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null,
  fuse_unk: false, byte_fallback: false, ignore_merges: false, ...more});
const tokenizer = parts => ({version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null,
  post_processor: null, decoder: null, ...parts});

/// The map of SentencePiece as a double array, of pairs of texts.
function compileMap(pairs) {
  let texts = Buffer.alloc(0);
  const tree = {};
  for (const [from, to] of pairs) {
    let node = tree;
    for (const b of utf8(from))
      node = node[b] = node[b] || {};
    node.value = texts.length;
    texts = Buffer.concat([texts, Buffer.from(to, 'utf8'), Buffer.from([0])]);
  }
  const units = [0], taken = [true];
  const place = (node, at, label) => {
    const labels = Object.keys(node).filter(k => k !== 'value').map(Number);
    const all = 'value' in node ? [0, ...labels] : labels;
    let base = 1;
    while (all.some(l => taken[base ^ l]))
      ++base;
    for (const l of all)
      taken[base ^ l] = true;
    units[at] = (((at ^ base) << 10) | label | ('value' in node ? 0x100 : 0)) >>> 0;
    if ('value' in node)
      units[base] = (node.value | 0x80000000) >>> 0;
    for (const l of labels)
      place(node[l], base ^ l, l);
  };
  place(tree, 0, 0);
  const array = Buffer.alloc(Math.ceil((units.length + 256) / 256) * 1024);
  units.forEach((unit, i) => array.writeUInt32LE(unit, i * 4));
  const size = Buffer.alloc(4);
  size.writeUInt32LE(array.length);
  return Buffer.concat([size, array, texts]).toString('base64');
}

const wordsOf = text => text.match(gpt2);
const made = {};

{ // Byte-level, with the words of Llama 3, which are looked for as a whole first.
  const pieces = corpus.match(/[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu);
  const merges = learnMerges(pieces.map(byteLevel), word => [...word], 350);
  const vocab = ids([...byteCharacters, ...merges.map(m => m.join('')), 'ĠUnreachable', 'ROMEOROMEO', 'ROMEO']);
  const n = Object.keys(vocab).length;
  made.words = tokenizer({
    added_tokens: [added(n, '<|endoftext|>'), added(n + 1, '<s>'), added(n + 2, '<|tool|>', {special: false}), added(n + 3, 'New York', {special: false, normalized: true})],
    pre_tokenizer: sequence('pretokenizers', [split({Regex: llama3}), bytes]),
    post_processor: sequence('processors', [{...bytes, type: 'ByteLevel'}, template(['<s>'], [], {'<s>': n + 1})]),
    decoder: {...bytes}, model: bpe({ignore_merges: true, vocab, merges})});
}
{ // GPT-2's words, a space in front, old merges, added tokens with every flag.
  const merges = learnMerges(wordsOf(corpus).map(byteLevel), word => [...word], 300);
  const vocab = ids(['<s>', '<pad>', '</s>', '<unk>', ...byteCharacters, ...merges.map(m => m.join('')), '<mask>']);
  const n = Object.keys(vocab).length;
  made.roberta = tokenizer({
    added_tokens: [added(0, '<s>'), added(1, '<pad>'), added(2, '</s>', {rstrip: true}), added(3, '<unk>', {normalized: true}),
      added(vocab['<mask>'], '<mask>', {lstrip: true}), added(n, 'ALONE', {special: false, single_word: true}),
      added(n + 1, '[MASK]', {special: false, lstrip: true, rstrip: true, single_word: true, normalized: true})],
    pre_tokenizer: {type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true},
    post_processor: {type: 'RobertaProcessing', sep: ['</s>', 2], cls: ['<s>', 0], trim_offsets: true, add_prefix_space: true},
    decoder: {...bytes}, model: bpe({continuing_subword_prefix: '', end_of_word_suffix: '', vocab, merges: merges.map(m => m.join(' '))})});
}
{ // NFC, and several expressions one after the other.
  const merges = learnMerges(wordsOf(corpus.normalize('NFC')).map(byteLevel), word => [...word], 250);
  const vocab = ids([...byteCharacters, ...merges.map(m => m.join(''))]);
  const n = Object.keys(vocab).length;
  made.cuts = tokenizer({
    added_tokens: [added(n, '<|endoftext|>')], normalizer: {type: 'NFC'},
    pre_tokenizer: sequence('pretokenizers', [split({Regex: '\\p{N}{1,3}'}), split({Regex: '[一-龥぀-ゟ゠-ヿ]+'}),
      split({Regex: "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"}), bytes]),
    decoder: {...bytes}, model: bpe({vocab, merges})});
}
{ // Characters with bytes for all others; the text is one word.
  const text = ('▁' + corpus).replace(/ /g, '▁');
  const merges = learnMerges(text.match(/▁*[^▁]+/g), word => [...word].filter(c => c !== '\n'), 350);
  const letters = [...new Set(merges.flat().join(''))];
  const vocab = ids(['<unk>', '<s>', '</s>', ...byteNames, '▁', ...letters, ...merges.map(m => m.join('')), '▁▁']);
  const model = bpe({unk_token: '<unk>', fuse_unk: true, byte_fallback: true, vocab, merges: [...merges, ['▁', '▁']]});
  const tokens = [added(0, '<unk>'), added(1, '<s>'), added(2, '</s>')];
  const decoder = sequence('decoders', [{type: 'Replace', pattern: {String: '▁'}, content: ' '}, {type: 'ByteFallback'}, {type: 'Fuse'},
    {type: 'Strip', content: ' ', start: 1, stop: 0}]);
  made.fallback = tokenizer({added_tokens: tokens,
    normalizer: sequence('normalizers', [{type: 'Prepend', prepend: '▁'}, {type: 'Replace', pattern: {String: ' '}, content: '▁'}]),
    post_processor: template(['<s>'], ['</s>'], {'<s>': 1, '</s>': 2}), decoder, model});
  made.first = tokenizer({added_tokens: tokens,
    pre_tokenizer: {type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: false},
    decoder, model: {...model, byte_fallback: false}});
}
{ // Ends of words, unknown characters one by one.
  const merges = learnMerges(corpus.match(/\S+/g), word => [...word].map((c, i, all) => (i + 1 === all.length ? c + '</w>' : c)), 300);
  const letters = [...new Set(corpus.match(/[!-~]/g))];
  const vocab = ids(['<unk>', ...letters, ...letters.map(c => c + '</w>'), ...merges.flat(), ...merges.map(m => m.join(''))]);
  made.suffix = tokenizer({added_tokens: [added(0, '<unk>')],
    normalizer: sequence('normalizers', [{type: 'Lowercase'}, {type: 'Strip', strip_left: true, strip_right: false}]),
    pre_tokenizer: {type: 'WhitespaceSplit'}, decoder: {type: 'BPEDecoder', suffix: '</w>'},
    model: bpe({unk_token: '<unk>', end_of_word_suffix: '</w>', vocab, merges})});
}
{ // Parts behind others have a prefix.
  const merges = learnMerges(corpus.match(/\S+/g), word => [...word].map((c, i) => (i ? '@@' + c : c)), 250, (a, b) => a + b.slice(2));
  const letters = [...new Set(corpus.match(/[!-~]/g))];
  const vocab = ids(['<unk>', ...letters, ...letters.map(c => '@@' + c), ...merges.flat(), ...merges.map(([a, b]) => a + b.slice(2))]);
  made.prefix = tokenizer({added_tokens: [added(0, '<unk>')],
    normalizer: {type: 'NFKD'}, pre_tokenizer: sequence('pretokenizers', [{type: 'CharDelimiterSplit', delimiter: ' '}, {type: 'Digits', individual_digits: false}]),
    decoder: {type: 'WordPiece', prefix: '@@', cleanup: false}, model: bpe({unk_token: '<unk>', continuing_subword_prefix: '@@', fuse_unk: true, vocab, merges})});
}
const pieces = (() => { // frequent parts of words, with their scores
  const counts = new Map();
  for (const word of corpus.replace(/\s+/g, ' ').match(/ ?[^ ]+/g)) {
    const symbols = [...word.replace(' ', '▁')];
    for (let size = 1; size <= 7; ++size)
      for (let i = 0; i + size <= symbols.length; ++i) {
        const part = symbols.slice(i, i + size).join('');
        counts.set(part, (counts.get(part) || 0) + size);
      }
  }
  return [...counts].filter(([p]) => !/[\u{e000}-\u{10ffff}]/u.test(p)).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 450)
    .map(([piece, n]) => [piece, Math.round(Math.log(n / 200000) * 1e6) / 1e6]);
})();
{ // SentencePiece's map of characters, words between spaces.
  const map = compileMap([['\n', ' '], ['\r', ' '], ['\t', ' '], ['\u00a0', ' '], ['\u3000', ' '], ['ﬁ', 'fi'], ['①', '1'], ['½', '1⁄2'],
    ['Ⅷ', 'VIII'], ['\u200b', ''], ['\u007f', ''], ['㍿', '株式会社'], ['e\u0301', 'é'], ['\u00ad', ''], ['각', '각'], ['A', 'A'], ...range(0xff01, 0xff5e).map((c, i) => [c, String.fromCharCode(0x21 + i)])]);
  made.unigram = tokenizer({added_tokens: [added(0, '<pad>'), added(1, '</s>'), added(2, '<unk>')],
    normalizer: sequence('normalizers', [{type: 'Precompiled', precompiled_charsmap: map}, {type: 'Replace', pattern: {Regex: ' {2,}'}, content: ' '}]),
    pre_tokenizer: sequence('pretokenizers', [{type: 'WhitespaceSplit'}, {type: 'Metaspace', replacement: '▁', add_prefix_space: true, prepend_scheme: 'always'}]),
    post_processor: template([], ['</s>'], {'</s>': 1}), decoder: {type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true},
    model: {type: 'Unigram', unk_id: 2, vocab: [['<pad>', 0], ['</s>', 0], ['<unk>', 0], ...pieces], byte_fallback: false}});
  // Bytes for what no piece spells; a space in front of the text alone.
  made.pieces = tokenizer({added_tokens: [added(0, '<unk>'), added(1, '<s>'), added(2, '<mask>', {lstrip: true})],
    normalizer: sequence('normalizers', [{type: 'Nmt'}, {type: 'NFKC'}, {type: 'Replace', pattern: {Regex: '(?<=\\w)-(?=\\w)|^\\s+'}, content: ' '}, {type: 'Strip', strip_left: false, strip_right: true}]),
    pre_tokenizer: {type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: true},
    decoder: sequence('decoders', [{type: 'ByteFallback'}, {type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: true}]),
    model: {type: 'Unigram', unk_id: 0, vocab: [['<unk>', 0], ['<s>', 0], ['<mask>', 0], ...byteNames.map(name => [name, -12]), ...pieces], byte_fallback: true}});
}
{ // BERT.
  const words = [...count(corpus.toLowerCase().match(/[a-z]+|\d|[^\sa-z]/gu))].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([word]) => word).slice(0, 300);
  const letters = range(0x61, 0x7a);
  const vocab = ids(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', ...letters, ...letters.map(c => '##' + c), ...['##ing', '##ed', '##er', '##s', '##1', '##é'], ...words]);
  const model = {type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: 20, vocab};
  const tokens = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].map((name, i) => added(i, name));
  made.bert = tokenizer({added_tokens: tokens, normalizer: {type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true},
    pre_tokenizer: {type: 'BertPreTokenizer'}, post_processor: {type: 'BertProcessing', sep: ['[SEP]', 3], cls: ['[CLS]', 2]},
    decoder: {type: 'WordPiece', prefix: '##', cleanup: true}, model});
  // The same words as a whole; no decoder.
  const whole = ids(['[UNK]', '[CLS]', ...words, 'the ', '.']);
  made.level = tokenizer({added_tokens: [added(0, '[UNK]'), added(1, '[CLS]')],
    normalizer: sequence('normalizers', [{type: 'NFD'}, {type: 'Lowercase'}, {type: 'StripAccents'}]),
    pre_tokenizer: sequence('pretokenizers', [{type: 'Whitespace'}, {type: 'Punctuation', behavior: 'Contiguous'}, {type: 'Digits', individual_digits: true}]),
    post_processor: template(['[CLS]'], [], {'[CLS]': 1}), model: {type: 'WordLevel', vocab: whole, unk_token: '[UNK]'}});
}
{ // Every behavior of a cut; characters of bytes alone.
  const alphabet = ids(byteCharacters);
  const cut = (name, list, model) => {
    made[name] = tokenizer({pre_tokenizer: sequence('pretokenizers', [...list, bytes]), decoder: {...bytes}, model: bpe(model)});
  };
  const merges = learnMerges(corpus.match(/\S+\s?/g).map(byteLevel), word => [...word], 120);
  const model = {vocab: ids([...byteCharacters, ...merges.map(m => m.join(''))]), merges};
  cut('previous', [split({String: ' '}, 'MergedWithPrevious'), split({Regex: '[aeiou]+'}, 'MergedWithNext'), {type: 'Punctuation', behavior: 'MergedWithPrevious'}], model);
  cut('next', [split({Regex: '\\w+|[^\\w\\s]+'}, 'Removed', true), split({Regex: 'e'}, 'Contiguous'), {type: 'Punctuation', behavior: 'Removed'}], model);
  cut('fixed', [split({Regex: "\\b|(?i:TH)|x{2}+|[[:space:]]|\\d"}, 'Contiguous'), {type: 'FixedLength', length: 7}], model);
  made.bytes = tokenizer({normalizer: sequence('normalizers', [{type: 'BertNormalizer', clean_text: true, handle_chinese_chars: false, strip_accents: true, lowercase: false}, {type: 'ByteLevel'}]),
    decoder: sequence('decoders', [bytes, {type: 'Strip', content: ' ', start: 2, stop: 0}]), model: bpe({...model, vocab: model.vocab})});
  void alphabet;
}

// ---- Goldens.
function fnv(parts) {
  let hash = 0x811c9dc5;
  for (const part of parts)
    for (const b of Buffer.from(part, 'utf8'))
      hash = Math.imul(hash ^ b, 0x01000193);
  return ((hash ^ (hash >>> 16)) & 0xffff).toString(16).padStart(4, '0');
}

(async () => {
  fs.mkdirSync(out, {recursive: true});
  fs.writeFileSync(path.join(out, 'lines.json'), '[\n' + lines.map(line => JSON.stringify(line)).join(',\n') + '\n]\n');
  for (const [name, json] of Object.entries(made)) {
    const text = JSON.stringify(json);
    const reference = Tokenizer.fromString(text);
    fs.writeFileSync(path.join(out, name + '.json'), text + '\n');
    const golden = [];
    for (const line of lines) {
      const ids = (await reference.encode(line, null, {addSpecialTokens: true})).getIds();
      const plain = ids.length ? await reference.decode(ids, true) : '';
      const shown = ids.length ? await reference.decode(ids, false) : '';
      golden.push(fnv([ids.join(' '), '\0', plain, '\0', shown]));
    }
    fs.writeFileSync(path.join(out, name + '.golden'), golden.join('\n') + '\n');
    console.log(name, lines.length, 'lines', text.length, 'bytes');
  }
})();
