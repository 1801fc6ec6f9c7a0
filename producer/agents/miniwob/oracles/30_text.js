// Pages whose text is read, and typed or highlighted.
const answer = (selector, text) => fill(one(selector), String(text)) || submit();

const ORDER = ['1st', '2nd', '3rd'];
const place = (ordinal) => parseInt(ordinal, 10) - 1;

// Fields of a search form, by the text beside each.
const searchMovies = () => {
  const [genre, director, year] = asked(/for (.*) movies directed by (.*) from year (\d+)/);
  const value = (label) => (/Genre/.test(label) ? genre : /Director/.test(label) ? director : year);
  for (const input of all('#area input[type=text]')) {
    let row = input.parentElement;
    while (!textOf(row)) row = row.parentElement;
    const action = fill(input, value(textOf(row)));
    if (action) return action;
  }
  return click(one('#area button') || one('#area .final'));
};

// Drag over the text of an element.
const highlight = (element) => {
  const squeeze = (text) => text.replace(/\s/g, '');
  if (squeeze(window.getSelection().toString()) === squeeze(element.textContent)) return null;
  const range = document.createRange();
  range.selectNodeContents(element);
  const lines = [...range.getClientRects()].filter((line) => line.width > 0);
  const [first, last] = [lines[0], lines[lines.length - 1]];
  return drag(
    { x: Math.floor(first.left), y: (first.top + first.bottom) / 2 },
    { x: Math.min(159, Math.ceil(last.right) + 2), y: (last.top + last.bottom) / 2 });
};

const tableValue = (key) => {
  const row = all('#tab tr').find((tr) => textOf(tr.children[0]) === key);
  return textOf(row.children[1]);
};

const complete = () => {
  const [start] = asked(/starts with "(.*?)"/);
  const [end] = asked(/ends with "(.*?)"/);
  const fitting = ui_utils.COUNTRIES.filter((name) => name.startsWith(start));
  const item = fitting.find((name) => !end || name.endsWith(end));
  const menu = one('.ui-autocomplete');
  return fill(one('#tags'), item) || (menu && isShown(menu) ? press('tab') : submit());
};

const logIn = () => {
  const [user, password] = asked(/username "(.*?)" and the password "(.*?)"/);
  return fill(one('#username'), user) || fill(one('#password'), password) || submit();
};

Object.assign(ORACLES, {
  'copy-paste': () => answer('#answer-input', one('#to-copy').value),
  'copy-paste-2': () =>
    answer('#answer-input', one(`#text-${place(asked(/the (\d\w+) text/)[0]) + 1}`).value),
  'find-word': () => {
    const words = textOf(one('#area p')).split(' ');
    const word = words[place(asked(/the (\d+)\w\w word/)[0])];
    return answer('#answer-input', word.replace(/[^a-zA-Z]/g, ''));
  },
  'generate-number': () => {
    const number = parseInt(textOf(one('#display-number')), 10);
    const [bound] = asked(/ (\d+),/);
    const isRight = /less/.test(utterance()) ? number < Number(bound)
      : /greater/.test(utterance()) ? number > Number(bound)
        : number % 2 === (/odd/.test(utterance()) ? 1 : 0);
    return click(one(isRight ? '#submit' : '#generate'));
  },
  'guess-number': (taken) => {
    const inputs = taken.filter((action) => action.type === 'type');
    const guesses = inputs.map((action) => Number(action.text));
    const last = guesses[guesses.length - 1];
    const hint = shownOnly(all('#lower span, #higher span'))[0];
    if (guesses.length && (!hint || Number(textOf(hint)) !== last)) return press('enter');
    let [low, high] = [0, 9];
    guesses.forEach((guess, index) => {
      const isHigher = index + 1 < guesses.length
        ? guesses[index + 1] > guess : hint.parentElement.id === 'higher';
      if (isHigher) low = guess + 1; else high = guess - 1;
    });
    return fill(one('#tt'), String(Math.floor((low + high) / 2)));
  },
  'highlight-text': () => highlight(one('#randomText')) || submit(),
  'highlight-text-2': () =>
    highlight(all('#randomText p')[place(asked(/the (\d)/)[0])]) || submit(),
  'login-user': logIn,
  'login-user-popup': () => (one('#popup') ? click(one('#popup-cancel')) : logIn()),
  'multi-layouts': searchMovies,
  'multi-orderings': searchMovies,
  'read-table': () => answer('#tt', tableValue(asked(/value of (.*) into/)[0])),
  'read-table-2': () => {
    const value = (label) => tableValue(textOf(one(label)).replace(':', ''));
    return fill(one('#tt1'), value('#ll1')) || answer('#tt2', value('#ll2'));
  },
  'scroll-text': () => {
    const words = one('#text-area').value.trim().split(/\s+/);
    return answer('#answer-input', words[words.length - 1].replace(/\W/g, ''));
  },
  'scroll-text-2': () => {
    const box = one('#text-area');
    const end = asked(/to the (bottom|top)/)[0] === 'top' ? 0 : box.scrollHeight - box.clientHeight;
    return Math.abs(box.scrollTop - end) > 5
      ? scroll(box, Math.sign(end - box.scrollTop) * box.scrollHeight) : submit();
  },
  'simple-algebra': () => {
    const problem = textOf(one('#math-problem'));
    const [, left, sign, right, sum] = problem.match(/(\S+) ([+-]) (\S+) = (-?\d+)/);
    const known = Number(left === 'x' ? right : left);
    const total = Number(sum);
    if (sign === '+') return answer('#math-answer', total - known);
    return answer('#math-answer', left === 'x' ? total + known : known - total);
  },
  'simple-arithmetic': () => {
    const [, left, sign, right] = textOf(one('#math-problem')).match(/(\d+) (\S) (\d+)/);
    const [a, b] = [Number(left), Number(right)];
    return answer('#math-answer', { '+': a + b, '-': a - b, x: a * b }[sign]);
  },
  'text-transform': () => answer('#tt', one('#captcha').textContent),
  'unicode-test': () => button(asked(/"(.*)"/)[0]),
  'use-autocomplete': complete,
  'use-autocomplete-nodelay': complete,
});
