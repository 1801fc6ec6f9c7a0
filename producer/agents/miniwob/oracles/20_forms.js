// Pages whose fields are filled in.
const submit = () => click(one('#subbtn'));

// The two ends of a field: the first part of a date or a time is at its left.
const fillParts = (input, value, keys) => {
  if (input.value === value) return null;
  if (document.activeElement !== input) {
    const box = boxOf(input);
    return clickAt(box.left + 8, (box.top + box.bottom) / 2);
  }
  return typed(keys);
};

const choose = (select, text) => {
  const now = select.selectedOptions[0];
  if (now && textOf(now) === text) return null;
  if (document.activeElement !== select) return press('tab');
  const index = [...select.options].findIndex((option) => textOf(option) === text);
  return press(index > select.selectedIndex ? 'down' : 'up');
};

// Open a date picker of jQuery UI, turn to the month, pick the day.
const pickDate = (input, month, day, year) => {
  const wanted = `${String(month).padStart(2, '0')}/${String(day).padStart(2, '0')}/${year}`;
  if (input.value === wanted) return null;
  const picker = one('#ui-datepicker-div');
  if (!picker || !isShown(picker)) return click(input);
  const cell = one('td[data-month]', picker);
  const shown = Number(cell.dataset.year) * 12 + Number(cell.dataset.month);
  const target = Number(year) * 12 + Number(month) - 1;
  if (shown > target) return click(one('.ui-datepicker-prev', picker));
  if (shown < target) return click(one('.ui-datepicker-next', picker));
  return click(withText('td[data-month] a', String(Number(day)), picker));
};
const chooseDate = () =>
  pickDate(one('#datepicker'), ...asked(/(\d+)\/(\d+)\/(\d+)/)) || submit();

Object.assign(ORACLES, {
  'enter-text': () => fill(one('#tt'), asked(/"(.*)"/)[0]) || submit(),
  'enter-text-dynamic': () => ORACLES['enter-text'](),
  'enter-text-2': () => {
    const [text, letters] = asked(/"(.*)" in all (\w+)/);
    const wanted = letters === 'upper' ? text.toUpperCase() : text.toLowerCase();
    return fill(one('#tt'), wanted) || submit();
  },
  'enter-password': () => {
    const [password] = asked(/"(.*)"/);
    return fill(one('#password'), password) || fill(one('#verify'), password) || submit();
  },
  'enter-date': () => {
    const [month, day, year] = asked(/(\d+)\/(\d+)\/(\d+)/);
    return fillParts(one('#tt'), `${year}-${month}-${day}`, month + day + year) || submit();
  },
  'enter-time': () => {
    const [hour, minute, half] = asked(/Enter (\d+):(\d+) ([AP])M/);
    const hours = (Number(hour) % 12) + (half === 'P' ? 12 : 0);
    const value = `${String(hours).padStart(2, '0')}:${minute}`;
    return fillParts(one('#tt'), value, hour.padStart(2, '0') + minute + half) || submit();
  },
  'choose-list': () =>
    choose(one('#options'), asked(/Select (.*) from the list/)[0]) || button('Submit'),
  'choose-date': chooseDate,
  'choose-date-easy': chooseDate,
  'choose-date-medium': chooseDate,
  'choose-date-nodelay': chooseDate,
  'click-scroll-list': (taken) => {
    const list = one('#options');
    const names = asked(/Select (.*) from the scroll/)[0].split(', ');
    const options = [...list.options].map(textOf);
    const indexes = names.map((name) => options.indexOf(name));
    indexes.sort((a, b) => a - b);
    if (!list.options[indexes[0]].selected) return click(list.options[indexes[0]]);
    if (indexes.length === 1 || list.options[indexes[1]].selected) return button('Submit');
    const moved = taken.filter((one) => one.type === 'keypress').length;
    return moved < indexes[1] - indexes[0] ? press('ctrl', 'down') : press('ctrl', 'space');
  },
});
