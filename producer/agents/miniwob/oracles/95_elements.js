// What the warm-up of the small policy is told of a page: the elements with the words by which
// they are found, as boxes around their middles. A figure that only has to be recognised has a
// word of its own, so that it is no second button of this name.
const DIGITS = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];
const FIGURES = {
  circle: 'disc', rectangle: 'block', triangle: 'wedge', letter: 'glyph', digit: 'numeral',
};
const POLYGONS = { 3: 'trigon', 4: 'tetragon', 5: 'pentagon', 6: 'hexagon', 7: 'heptagon' };
const ORDINALS = { tt1: 'st', tt2: 'nd', tt3: 'rd' };
// A box of a patch's size labels at least one patch; a wide element is read in its middle.
const [LEAST, MOST] = [16, 80];

const named = (label, box) => {
  const { x, y } = middle(cut(box, SCREEN));
  const half = (size) => Math.round(Math.min(MOST, Math.max(LEAST, size)) / 2);
  const [dx, dy] = [half(box.right - box.left), half(box.bottom - box.top)];
  return { label, box: [x - dx, y - dy, x + dx, y + dy] };
};
const labelOf = (element) => {
  if (element.dataset.type && element.closest('.widget')) return element.dataset.type;
  if (element.dataset.sides) return DIGITS[element.dataset.sides];
  if (element.tagName === 'INPUT') return `${ORDINALS[element.id] || ''} textbox`.trim();
  return element.closest('.ui-dialog-titlebar') ? 'x' : textOf(element);
};
const figureOf = (element) => {
  const { text, type } = described(element);
  return FIGURES[type === 'shape' ? text : type];
};
const shapeOf = (element) => {
  const { size, color, text } = described(element);
  return `${size} ${color} ${text}`;
};

window.ELEMENTS = () => [
  ...shownOnly(all('button, #area input, #area textarea, #area ul a'))
    .map((element) => named(labelOf(element), boxOf(element))),
  ...all('#area [data-color]').map((element) => named(element.dataset.color, boxOf(element))),
  ...drawn().map((element) => named(
    one('#area-buttons') ? figureOf(element) : shapeOf(element), boxOf(element))),
  ...all('canvas#c').map((canvas) => named(POLYGONS[countCorners(canvas)], boxOf(canvas))),
].filter(({ box: [left, top, right, bottom] }) => (
  left + right >= 0 && top + bottom >= 0 && left + right < 320 && top + bottom < 420));
