// Pages like small sites, games and lists.
const media = (user) => all('.media').filter((post) => textOf(one('.username', post)) === user);
const activate = (name, posts) => {
  const icons = posts.map((post) => one(`.${name}`, post));
  const next = icons.find((icon) => !icon.classList.contains('active'));
  return next ? click(next) : click(one('#submitRow button'));
};

const openFolder = (item) => {
  const closed = [];
  for (let up = item.parentElement; up && up.id !== 'tree'; up = up.parentElement) {
    if (up.tagName === 'LI') closed.unshift(up);
  }
  const next = closed.find((folder) => !isShown(one('ul', folder)));
  return next ? click(one('span.folder', next)) : null;
};

Object.assign(ORACLES, {
  'ascending-numbers': () => {
    const first = withText('#area_svg text', '1');
    if (first) return click(first);
    const left = all('#area_svg rect').sort((a, b) => a.dataset.index - b.dataset.index);
    return click(left[0]);
  },
  'find-greatest': () => {
    const cards = all('.card');
    const value = (card) => Number(one('.card-value', card).textContent);
    const best = cards.reduce((a, b) => (value(b) > value(a) ? b : a));
    return best.classList.contains('hidden') ? click(best) : click(one('#submit'));
  },
  'grid-coordinate': () => click(document.getElementById(asked(/(\(-?\d,-?\d\))/)[0])),
  'navigate-tree': () => {
    const name = asked(/named "(.*)"/)[0];
    const named = all('#tree span').filter((span) => textOf(span) === name);
    const item = named.find((span) => !openFolder(span.parentElement)) || named[0];
    return openFolder(item.parentElement) || click(item);
  },
  'number-checkboxes': () => {
    const pattern = PATTERNS[Number(asked(/number "(\d)"/)[0])].flat();
    const boxes = all('#checkboxes input');
    const index = boxes.findIndex((box, at) => box.checked !== (pattern[at] === 1));
    return index < 0 ? submit() : click(boxes[index]);
  },
  'odd-or-even': () => {
    for (const row of all('.row')) {
      const isOdd = Math.abs(Number(textOf(one('.display-number', row)))) % 2 === 1;
      const choice = one(isOdd ? '.odd' : '.even', row);
      if (!choice.classList.contains('selected')) return click(choice);
    }
    return click(one('#submit'));
  },
  'phone-book': () => {
    const [person, property] = asked(/Find (\S+) in .* their (\w+)/);
    return textOf(one('#contact .name')) === person
      ? click(one(`#contact a.${property}`)) : click(withText('#pagination a', '>'));
  },
  'search-engine': () => {
    const [name, ordinal] = asked(/enter "(.*?)" .*?(\d+)\w\w/);
    if (!one('#page-content a')) return fill(one('#search-text'), name) || click(one('#search'));
    const index = Number(ordinal) - 1;
    const link = one(`#page-content a[data-result="${index}"]`);
    return link ? click(link) : click(withText('#pagination a', String(Math.floor(index / 3) + 1)));
  },
  'sign-agreement': () => {
    const [name, label] = asked(/name "(.*)" then press "(.*)"/);
    if (!name) return click(one('#cancel'));
    if (one('#name').disabled) return scroll(one('#text-area'), one('#text-area').scrollHeight);
    return fill(one('#name'), name) || click(one(label === 'Agree' ? '#agree' : '#cancel'));
  },
  'simon-says': (taken) => {
    const shown = window.seen = window.seen || [];
    const pushed = one('#area .push');
    if (pushed) shown.push(pushed);
    const pushes = taken.filter((action) => action.type === 'click').length;
    if (!pushes && taken.length < 6) return wait(taken.length ? 0.6 : 0.2);
    return click(shown[pushes]);
  },
  'social-media': () => {
    const [user, label] = asked(/user (\S+), click on the "(.*)" button/);
    const action = Object.keys(ACTIONS).find((key) => ACTIONS[key] === label);
    const [post] = media(user);
    const target = one(`.${action}`, post);
    return isShown(target) ? click(target) : click(one('.more', post));
  },
  'social-media-all': () => {
    const [label, user] = asked(/Click the "(.*)" button on all posts by (\S+)/);
    return activate(label.toLowerCase(), media(user));
  },
  'social-media-some': () => {
    const [label, count, user] = asked(/Click the "(.*)" button on (\d+) posts? by (\S+)/);
    return activate(label.toLowerCase(), media(user).slice(0, Number(count)));
  },
  'stock-market': (taken) => {
    const price = (text) => Number(text.replace('$', ''));
    const limit = price(asked(/less than (\S+)\.$/)[0]);
    if (price(textOf(one('#stock-price'))) <= limit) return click(one('#buy'));
    return wait(taken.length < 14 ? 0.5 : 0.1);
  },
});
