// Pages with drawn shapes.
const SHAPE_OF_TAG = { circle: 'circle', rect: 'rectangle', polygon: 'triangle' };

// What a drawn shape is, in the words of `shapes.js`.
const described = (element) => {
  const text = SHAPE_OF_TAG[element.tagName] || textOf(element);
  const type = SHAPE_OF_TAG[element.tagName] ? 'shape' : /\d/.test(text) ? 'digit' : 'letter';
  const width = element.tagName === 'circle'
    ? 2 * element.getAttribute('r')
    : element.tagName === 'text' ? parseFloat(element.getAttribute('font-size'))
      : element.getBBox().width;
  return { text, type, color: element.getAttribute('fill'), size: width > 15 ? 'large' : 'small' };
};
const fits = (element, words) => {
  const shape = described(element);
  const rest = words.split(' ');
  if (['large', 'small'].includes(rest[0]) && rest.shift() !== shape.size) return false;
  if (rest.length > 1 && rest.shift() !== shape.color) return false;
  return rest[0] === 'item' || rest[0] === shape.text || rest[0] === shape.type;
};
const drawn = (selector = '#area_svg') => all(`${selector} > *`);
const number = (element, name) => parseFloat(element.getAttribute(name));

// Points that the page draws where it was clicked, 50 px above.
const mark = (x, y) => (one('#blue-circle') ? submit() : clickAt(x, y + 50));

// The number of corners of a polygon around the middle of a canvas: how often its edge comes and
// goes in a turn.
const countCorners = (canvas) => {
  const { width, height } = canvas;
  const data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
  const powers = [3, 4, 5, 6, 7].map((n) => {
    let [re, im] = [0, 0];
    for (let y = 0; y < height; y += 1) {
      for (let x = 0; x < width; x += 1) {
        if (data[4 * (y * width + x) + 3] > 128) {
          const angle = Math.atan2(y - height / 2, x - width / 2);
          const far = Math.hypot(y - height / 2, x - width / 2);
          re += far * Math.cos(n * angle);
          im += far * Math.sin(n * angle);
        }
      }
    }
    return { n, power: Math.hypot(re, im) };
  });
  return powers.reduce((best, each) => (each.power > best.power ? each : best)).n;
};

// Where the hidden point can be, by what the page has said of the pointer's places. What was said
// is noted on the page, which forgets it.
const HEAT = { HOT: [0, 5], WARM: [5, 10], COLD: [10, 40], 'ICE COLD': [40, 999] };
const searchHeat = (taken) => {
  const last = taken[taken.length - 1];
  const signal = one('#signal');
  if (!last || !signal) return { type: 'move', x: 80, y: 112 };
  window.heard = (window.heard || []).concat([{ x: last.x, y: last.y - 50, said: textOf(signal) }]);
  if (textOf(signal) === 'HOT') return clickAt(last.x, last.y);
  const possible = [];
  for (let x = 5; x < 155; x += 1) {
    for (let y = 5; y < 120; y += 1) {
      const isPossible = window.heard.every((one) => {
        const far = Math.hypot(x - one.x, y - one.y);
        const [least, most] = HEAT[one.said];
        return far >= least && far < most;
      });
      if (isPossible) possible.push({ x, y });
    }
  }
  const aim = possible[Math.floor(possible.length / 2)];
  return { type: 'move', x: aim.x, y: aim.y + 50 };
};

Object.assign(ORACLES, {
  'click-shape': () => {
    const words = asked(/Click on a (.*)/)[0];
    return click(drawn().find((element) => fits(element, words)));
  },
  'count-shape': () => {
    const words = asked(/How many (.*)s are there/)[0];
    const count = drawn().filter((element) => fits(element, words)).length;
    return click(withText('#count-buttons button', String(count)));
  },
  'count-sides': () => click(one(`[data-sides="${countCorners(one('#c'))}"]`)),
  'identify-shape': () => {
    const shape = described(drawn()[0]);
    return click(one(`[data-type="${shape.type === 'shape' ? shape.text : shape.type}"]`));
  },
  'circle-center': () => {
    const circle = one('.black-circle');
    return mark(number(circle, 'cx'), number(circle, 'cy'));
  },
  'find-midpoint': () => {
    const [a, b] = all('.black-circle');
    return mark((number(a, 'cx') + number(b, 'cx')) / 2, (number(a, 'cy') + number(b, 'cy')) / 2);
  },
  'button-delay': (taken) => {
    const seconds = Number(asked(/wait (\d)/)[0]);
    if (!taken.length) return click(one('#subbtn'));
    return taken.length === 1 ? wait(seconds - 0.5) : click(one('#subbtn2'));
  },
  'chase-circle': () => at(one('#circ'), 'move'),
  'hot-cold': searchHeat,
});
