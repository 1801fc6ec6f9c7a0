// What the oracles are written with. An oracle is a function of the actions taken so far; it reads
// the page and returns the next action, or null. The helpers return an action, or null where
// nothing is left to do, so that `a || b || c` is a plan that goes on wherever the page stands.
window.ORACLES = {};
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const one = (selector, root = document) => root.querySelector(selector);
const textOf = (element) => element.textContent.replace(/\s+/g, ' ').trim();
const withText = (selector, text, root = document) =>
  all(selector, root).find((element) => textOf(element) === text);
const utterance = () => [core.getUtterance()].map((said) => said.utterance || said)[0];
const asked = (pattern) => (utterance().match(pattern) || []).slice(1);
const area = () => one('#area');

const boxOf = (element) => {
  const box = element.getBoundingClientRect();
  return { left: box.left, top: box.top, right: box.right, bottom: box.bottom };
};
const middle = (box) => ({
  x: Math.floor((box.left + box.right) / 2),
  y: Math.floor((box.top + box.bottom) / 2),
});
const cut = (box, by) => ({
  left: Math.max(box.left, by.left),
  top: Math.max(box.top, by.top),
  right: Math.min(box.right, by.right),
  bottom: Math.min(box.bottom, by.bottom),
});
const SCREEN = { left: 0, top: 0, right: 160, bottom: 210 };

// The nearest ancestor that scrolls up and down, or null.
const scroller = (element) => {
  for (let up = element.parentElement; up && up !== document.body; up = up.parentElement) {
    const style = getComputedStyle(up).overflowY;
    const isLonger = up.scrollHeight > up.clientHeight + 1;
    if (isLonger && (style === 'auto' || style === 'scroll')) return up;
  }
  return null;
};

const scroll = (element, dy) => ({
  type: 'scroll', ...middle(cut(boxOf(element), SCREEN)), scroll_y: Math.round(dy),
});

// The visible part of an element: {box}, or {scroll} where its container must scroll first.
const visible = (element) => {
  const box = boxOf(element);
  const container = scroller(element);
  if (container) {
    const frame = cut(boxOf(container), SCREEN);
    const center = (box.top + box.bottom) / 2;
    if (center < frame.top + 1 || center > frame.bottom - 1) {
      return { scroll: scroll(container, center - (frame.top + frame.bottom) / 2) };
    }
    return { box: cut(box, frame) };
  }
  return { box: cut(box, SCREEN) };
};

const at = (element, type, more = {}) => {
  if (!element) return null;
  const seen = visible(element);
  return seen.scroll || { type, ...middle(seen.box), ...more };
};
const click = (element) => at(element, 'click');
const clickAt = (x, y) => ({ type: 'click', x: Math.round(x), y: Math.round(y) });
const press = (...keys) => ({ type: 'keypress', keys });
const typed = (text) => ({ type: 'type', text });
const wait = (seconds) => ({ type: 'wait', duration_s: seconds });
const drag = (...points) => ({
  type: 'drag', path: points.map(({ x, y }) => [Math.round(x), Math.round(y)]),
});

// Whether an element has been clicked in this episode: the page marks it.
const wasClicked = (element) => element.dataset.tampered === 'e' + WOB_EPISODE_ID;
const clickOnce = (element) => (element && !wasClicked(element) ? click(element) : null);
const check = (input, wanted = true) => (input.checked === wanted ? null : click(input));

// How many characters of the focused field are selected.
const selected = (input) => (input.selectionEnd === null
  ? window.getSelection().toString().length
  : input.selectionEnd - input.selectionStart);

// Put text into a field: focus it, empty it, type.
const fill = (input, text) => {
  if (input.value === text) return null;
  if (document.activeElement !== input) return click(input);
  if (input.value && selected(input) < input.value.length) return press('ctrl', 'a');
  return typed(text);
};
