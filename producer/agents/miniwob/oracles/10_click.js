// Pages whose elements are clicked.
const button = (text) => click(withText('button', text));
const isShown = (element) => element.getClientRects().length > 0 &&
  getComputedStyle(element).visibility !== 'hidden';
const shownOnly = (elements) => elements.filter(isShown);

// Tick the boxes whose labels pass, untick the others, and submit.
const tick = (isWanted) => {
  for (const input of all('#area label input')) {
    const action = check(input, isWanted(textOf(input.parentElement)));
    if (action) return action;
  }
  return button('Submit');
};
const tickNamed = () => {
  const names = asked(/^Select (.*) and click Submit/)[0].split(', ');
  return tick((label) => names.includes(label));
};
const tickSimilar = () => {
  const words = asked(/similar to (.*) and click/)[0].split(', ');
  const near = new Set(SYNONYMS.filter((set) => words.some((word) => set.includes(word))).flat());
  return tick((label) => near.has(label));
};

const linkIn = (openPanel) => {
  const link = withText('.alink', asked(/link "(.*)"/)[0]);
  return openPanel(link) || click(link);
};
const openTab = (link) => {
  const panel = link.closest('[id^=tabs-]');
  return isShown(panel) ? null : click(one(`a[href="#${panel.id}"]`));
};
const openSection = (link) => {
  const panel = link.closest('.ui-accordion-content');
  return isShown(panel) ? null : click(panel.previousElementSibling);
};

const openMenuPath = (path, items, press) => {
  const steps = path.map((text) => items().filter((item) => textOf(item) === text));
  const deepest = steps.map((found) => shownOnly(found)[0]);
  for (let depth = path.length - 1; depth >= 0; depth -= 1) {
    const item = deepest[depth];
    if (item) return depth === path.length - 1 ? press(item) : at(item, 'move');
  }
  return null;
};

Object.assign(ORACLES, {
  'click-test': () => click(one('#subbtn')),
  'click-test-2': () => click(one('#subbtn')),
  'click-test-transfer': () => button(asked(/button (\w+)/)[0]),
  'click-button': () => button(asked(/"(.*)"/)[0]),
  'click-button-sequence': () => clickOnce(one('#subbtn')) || click(one('#subbtn2')),
  'click-checkboxes': tickNamed,
  'click-checkboxes-large': tickNamed,
  'click-checkboxes-transfer': tickNamed,
  'click-checkboxes-soft': tickSimilar,
  'click-option': () => {
    const wanted = withText('#area label', asked(/^Select (.*) and/)[0]);
    return check(one('input', wanted)) || button('Submit');
  },
  'click-collapsible': () =>
    (isShown(one('.ui-accordion-content')) ? null : click(one('#area h3'))) || button('Submit'),
  'click-collapsible-nodelay': () => ORACLES['click-collapsible'](),
  'click-collapsible-2': () => linkIn(openSection),
  'click-collapsible-2-nodelay': () => linkIn(openSection),
  'click-color': () => click(one(`#area [data-color="${asked(/the (.*) colored/)[0]}"]`)),
  'click-dialog': () => click(one('.ui-dialog-titlebar button')),
  'click-dialog-2': () => {
    const label = asked(/"(.*)"/)[0];
    return label === 'x'
      ? click(one('.ui-dialog-titlebar button'))
      : click(withText('.ui-dialog-buttonset button', label));
  },
  'click-link': () => linkIn(() => null),
  'click-menu': () => openMenuPath(
    asked(/Select (.*)/)[0].split('>'), () => all('#menu li > div'), click),
  'click-menu-2': () => {
    const icon = one('#query .ui-icon');
    const label = icon
      ? Object.keys(PROBLEM_SET).find((key) => icon.classList.contains(PROBLEM_SET[key]))
      : asked(/labeled "(.*)"/)[0];
    if (!isShown(one('#menu'))) return click(one('#open-menu'));
    const nested = ['Prev', 'Stop', 'Play', 'Next'].includes(label);
    return openMenuPath(nested ? ['Playback', label] : [label], () => all('#menu li > div'), click);
  },
  'click-pie': (taken) => {
    if (!taken.length) return click(one('#divWheel svg'));
    return click(withText('#divWheel svg text', asked(/labeled "(.*)"/)[0]));
  },
  'click-shades': () => {
    const color = asked(/shades of (\w+)/)[0];
    const next = all('#area span').find(
      (span) => (span.dataset.color === color) !== (span.className === 'selected'));
    return next ? click(next) : button('Submit');
  },
  'click-tab': () => click(withText('#area ul a', asked(/on (Tab #\d)/)[0])),
  'click-tab-2': () => linkIn(openTab),
  'click-tab-2-easy': () => linkIn(openTab),
  'click-tab-2-medium': () => (withText('.alink', asked(/link "(.*)"/)[0])
    ? linkIn(openTab) : click(all('.ui-tab a')[1])),
  'click-tab-2-hard': () => linkIn(openTab),
  'click-widget': () => click(one(`#area [data-type="${asked(/"(.*)"/)[0]}"]`)),
  'focus-text': () => click(one('#tt')),
  'focus-text-2': () => click(one(`#tt${asked(/the (\d)/)[0]}`)),
});
