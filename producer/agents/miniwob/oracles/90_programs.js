// Pages like small programs: shops, an editor, a terminal, a calendar.
const least = (elements, value) => elements.reduce((a, b) => (value(b) < value(a) ? b : a));

const ticket = () => {
  const wish = utterance();
  const sign = /longest|most expensive/.test(wish) ? -1 : 1;
  const value = (flight) => sign * (/duration/.test(wish)
    ? one('.time-duration', flight).dataset.duration : one('.buy-ticket', flight).dataset.price);
  return click(one('.buy-ticket', least(all('.flight'), value)));
};

const airport = (input, code) => {
  const full = DOMESTIC_FLIGHTS.find((name) => name.includes(code));
  return fill(input, full) || (shownOnly(all('.ui-autocomplete')).length ? press('tab') : null);
};
const bookFlight = () => {
  const [wish, from, to, month, day, year] =
    asked(/the (\w+) one-way flight from: (.*) to: (.*) on (\d+)\/(\d+)\/(\d+)/);
  if (isShown(one('#results'))) {
    const value = (flight) => Number(wish === 'shortest'
      ? one('.time-duration', flight).dataset.duration
      : one('.flight-price', flight).dataset.price);
    return click(one('.flight-price', least(all('#results .flight'), value)));
  }
  return airport(one('#flight-from'), from) || airport(one('#flight-to'), to) ||
    pickDate(one('#datepicker'), month, day, year) || click(one('#search'));
};

const orderFood = () => {
  const [number, type] = asked(/Order (\d+) items that are (.*)/);
  const [list] = asked(/each item: (.*)/);
  const names = type
    ? [MENU.find((item) => item.types.includes(type)).name.trim()]
    : list.split(',').map((name) => name.trim());
  for (const name of names) {
    const item = all('.food-item').find((each) => each.dataset.item.trim() === name);
    if (Number(item.dataset.quantity) < Number(number || 1)) return click(one('.add', item));
  }
  return click(one('#submit-order button'));
};

const useTerminal = () => {
  if (document.activeElement.id !== 'terminal-target') return click(one('#terminal'));
  const [extension] = asked(/extension \.(.*)$/);
  const isAsked = (name) => (extension
    ? name.indexOf(extension) + extension.length === name.length : !name.includes('.'));
  return typed(`rm ${currentFiles.find(isAsked)}\n`);
};

// Give a part of an editor's text a style: select it, then use the toolbar.
const STYLES = { bold: 'bold', italics: 'italic', underlined: 'underline' };
const useEditor = () => {
  const [word] = asked(/the text (\S+) the/);
  const [style] = asked(/the style (\w+)/);
  const [color] = asked(/the color (\w+)/);
  const text = editor.getText().trimEnd();
  const start = word ? text.split(' ').slice(0, text.split(' ').indexOf(word)).join(' ').length : 0;
  const from = start && word ? start + 1 : 0;
  const wanted = word || text;
  const has = editor.getFormat(from, wanted.length);
  if (style ? has[STYLES[style]] : COLOR_MAP[color].includes(has.color)) return submit();
  const picker = one('.ql-color .ql-picker-options');
  if (window.getSelection().toString().trim() !== wanted && !isShown(picker)) {
    const isFocused = document.activeElement.className === 'ql-editor';
    if (!word) return isFocused ? press('ctrl', 'a') : click(one('.ql-editor p'));
    const node = document.createTreeWalker(one('.ql-editor'), NodeFilter.SHOW_TEXT).nextNode();
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, from + wanted.length);
    const box = boxOf(range);
    const y = (box.top + box.bottom) / 2;
    return drag({ x: box.left, y }, { x: box.right, y });
  }
  if (style) return click(one(`.ql-${STYLES[style]}`));
  if (!isShown(picker)) return click(one('.ql-color .ql-picker-label'));
  const items = all('.ql-picker-item', picker);
  return click(items.find((item) => COLOR_MAP[color].includes(item.dataset.value)));
};

const HALF_HOURS = { '8AM': [16, 24], '12PM': [24, 32], '4PM': [32, 40] };
const LENGTHS = {
  '0.5 hours': 1, '1 hour': 2, '1.5 hours': 3, '30 mins': 1, '60 mins': 2, '90 mins': 3,
};
const planEvent = () => {
  const [length, name, hour] = asked(/Create a (.*) event named "(.*)", between (\w+) and/);
  if (one('#create-event')) return fill(one('#event-name'), name) || click(one('.create'));
  const [first, end] = HALF_HOURS[hour];
  const slots = LENGTHS[length];
  const events = all('#area .event').map(boxOf);
  const isFree = (slot) => {
    const { y } = center(one(`#hh-${slot}`));
    return events.every((event) => y < event.top || y > event.bottom);
  };
  for (let start = first; start + slots <= end; start += 1) {
    const wanted = Array.from({ length: slots }, (_, index) => start + index);
    if (wanted.every(isFree)) {
      const [from, to] = [one(`#hh-${start}`), one(`#hh-${start + slots - 1}`)];
      const seen = [visible(from), visible(to)].find((each) => each.scroll);
      const { x, y } = center(from);
      return seen ? seen.scroll : drag({ x, y: y - 3 }, { x, y }, { x, y: center(to).y + 3 });
    }
  }
  return null;
};

Object.assign(ORACLES, {
  'book-flight': bookFlight,
  'book-flight-nodelay': bookFlight,
  'buy-ticket': ticket,
  'daily-calendar': planEvent,
  'order-food': orderFood,
  'terminal': useTerminal,
  'text-editor': useEditor,
  'visual-addition': () => answer('#math-answer', all('.addition-block').length),
});
