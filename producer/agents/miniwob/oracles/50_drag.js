// Pages whose elements are dragged, and pages that are drawn on.
const center = (element) => middle(boxOf(element));
const dragTo = (element, to) => drag(center(element), to);
const DIRECTIONS = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] };

const dragTowards = (shape) => {
  const [dx, dy] = DIRECTIONS[asked(/Drag the \w+ (\w+)/)[0]];
  if (shape.getAttribute('transform')) return submit();
  const { x, y } = center(shape);
  return dragTo(shape, { x: x + 18 * dx, y: y + 18 * dy });
};

// Drag an item of a sortable list or grid to the place of another.
const dragItem = (item, target) => {
  const items = [...item.parentElement.children];
  const isLater = items.indexOf(target) > items.indexOf(item);
  const [from, to] = [center(item), center(target)];
  const isGrid = new Set(items.map((each) => center(each).x)).size > 1;
  if (!isGrid) return drag(from, { x: to.x, y: to.y + (isLater ? 4 : -4) });
  return isLater ? drag(from, { x: to.x, y: from.y }, to) : drag(from, { x: to.x - 4, y: to.y });
};
const listTarget = (items, index, words) => {
  const place = words.match(/to the (\d)/);
  if (place) return items[Number(place[1]) - 1];
  if (/to the top/.test(words)) return items[0];
  if (/to the bottom/.test(words)) return items[items.length - 1];
  return items[/down/.test(words) ? index + 1 : index - 1];
};
const GRID = ['top left', 'top center', 'top right', 'center left', 'center', 'center right',
  'bottom left', 'bottom center', 'bottom right'];
const GRID_STEPS = { up: -3, down: 3, left: -1, right: 1 };
const gridTarget = (items, index, words) => {
  const [, step] = words.match(/(\w+) by one/) || [];
  return items[step ? index + GRID_STEPS[step] : GRID.indexOf(words.match(/to the (.*)\./)[1])];
};
const dragNamed = (target) => {
  const [name, words] = asked(/Drag (\S+) (.*)/);
  const items = all('#sortable li');
  const index = items.findIndex((item) => textOf(item) === name);
  return dragItem(items[index], target(items, index, words));
};

const TAGS = { rectangles: 'rect', circles: 'circle', triangles: 'polygon' };
const loose = () => all('#area_svg > *').filter((shape) => shape.id !== 'shape-container');
const isInside = (shape, box) => {
  const [inner, outer] = [boxOf(shape), boxOf(box)];
  return inner.left > outer.left && inner.left < outer.right - 2 &&
    inner.top > outer.top && inner.top < outer.bottom - 2;
};
const sortShapes = (boxFor) => {
  const next = loose().find((shape) => boxFor(shape) && !isInside(shape, boxFor(shape)));
  return next ? dragTo(next, center(boxFor(next))) : submit();
};

const unit = (from, to) => {
  const length = Math.hypot(to.x - from.x, to.y - from.y);
  return { x: (to.x - from.x) / length, y: (to.y - from.y) / length };
};
const point = (circle) => ({ x: number(circle, 'cx'), y: number(circle, 'cy') });
// The point that a direction leads to from another, on the drawing or the other way round.
const ahead = (from, direction, far, isBothWays) => {
  const to = { x: from.x + far * direction.x, y: from.y + far * direction.y };
  const isOn = to.x > 5 && to.x < 145 && to.y > 5 && to.y < 120;
  if (isOn || !isBothWays) return to;
  return { x: from.x - far * direction.x, y: from.y - far * direction.y };
};
const normal = (direction) => ({ x: -direction.y, y: direction.x });

const drawnPath = () => one('#area svg path');
const drawCircle = () => {
  if (drawnPath()) return button('Submit');
  const { x, y } = center(one('#circ'));
  return drag(...Array.from({ length: 25 }, (_, step) => ({
    x: x + 16 * Math.cos((step * Math.PI) / 12), y: y + 16 * Math.sin((step * Math.PI) / 12),
  })));
};
const drawLine = () => {
  if (drawnPath()) return button('Submit');
  const { x, y } = center(one('#circ'));
  const frame = cut(boxOf(one('#area svg')), SCREEN);
  return /horizontal/.test(utterance())
    ? drag({ x: frame.left + 4, y }, { x: frame.right - 4, y })
    : drag({ x, y: frame.top + 4 }, { x, y: frame.bottom - 4 });
};

// Only the part of a handle that is inside its frame can be seized.
const resize = () => {
  const [side, size] = asked(/the (width|height) is (larger|smaller)/);
  const frame = one('.ui-wrapper');
  const now = one('#tt').style[side];
  window.sizeBefore = window.sizeBefore || now;
  if (window.sizeBefore !== now) return click(one('#submit'));
  const handle = one(side === 'width' ? '.ui-resizable-e' : '.ui-resizable-s', frame);
  const { x, y } = middle(cut(boxOf(handle), boxOf(frame)));
  const by = size === 'larger' ? 12 : -12;
  return drag({ x, y }, side === 'width' ? { x: x + by, y } : { x, y: y + by });
};

Object.assign(ORACLES, {
  'bisect-angle': () => {
    const vertex = point(one('.init-blue'));
    const [a, b] = all('.init-black').map((circle) => unit(vertex, point(circle)));
    const sum = { x: a.x + b.x, y: a.y + b.y };
    const length = Math.hypot(sum.x, sum.y);
    const direction = length < 0.1 ? normal(a) : { x: sum.x / length, y: sum.y / length };
    const aim = ahead(vertex, direction, 30, false);
    return mark(aim.x, aim.y);
  },
  'drag-box': () => {
    const [small, large] = [one('#draggableSmall'), one('#draggableLarge')];
    const [a, b] = [center(small), center(large)];
    return Math.hypot(a.x - b.x, a.y - b.y) < 10 ? submit() : dragTo(small, b);
  },
  'drag-circle': () => dragTowards(one('#area svg circle')),
  'drag-items': () => dragNamed(listTarget),
  'drag-items-grid': () => dragNamed(gridTarget),
  'drag-shapes': () => {
    const tag = TAGS[asked(/all (\w+) into/)[0]];
    return sortShapes((shape) => (shape.tagName === tag ? one('#shape-container') : null));
  },
  'drag-shapes-2': () => {
    const [what] = asked(/all (\w+)/);
    const [left, right] = all('#shape-container');
    const isLeft = (shape) =>
      (TAGS[what] ? shape.tagName === TAGS[what] : shape.getAttribute('fill') === what);
    return sortShapes((shape) => (isLeft(shape) ? left : right));
  },
  'drag-single-shape': () => dragTowards(one('.black-shape')),
  'drag-sort-numbers': () => {
    const items = all('#sortable li');
    const value = (item) => parseInt(textOf(item), 10);
    const sorted = [...items].sort((a, b) => value(a) - value(b));
    const index = items.findIndex((item, at) => value(item) !== value(sorted[at]));
    return index < 0 ? submit() : dragItem(sorted[index], items[index]);
  },
  'draw-circle': drawCircle,
  'draw-line': drawLine,
  'moving-items': () => {
    const frame = boxOf(one('#area_svg'));
    const hittable = all('.item').map(center).filter(({ x, y }) =>
      x > 4 && x < 156 && y > frame.top + 4 && y < Math.min(206, frame.bottom - 4));
    return hittable.length ? clickAt(hittable[0].x, hittable[0].y) : wait(0.3);
  },
  'resize-textarea': resize,
  'right-angle': () => {
    const vertex = point(one('#init-blue'));
    const aim = ahead(vertex, normal(unit(vertex, point(one('#init-black')))), 30, true);
    return mark(aim.x, aim.y);
  },
});
