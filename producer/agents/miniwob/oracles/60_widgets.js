// Pages with sliders, spinners, colour pickers and sequences of them.
const KEYS = { horizontal: ['left', 'right'], vertical: ['down', 'up'] };

// Drag the handle close to the value, then press arrow keys.
const slide = (selector, value) => {
  const slider = $(selector);
  const option = (name) => slider.slider('option', name);
  const difference = value - slider.slider('value');
  if (!difference) return null;
  const handle = one('.ui-slider-handle', slider[0]);
  const [less, more] = KEYS[option('orientation')];
  if (Math.abs(difference) <= 2) {
    return document.activeElement === handle ? press(difference > 0 ? more : less) : press('tab');
  }
  const box = boxOf(slider[0]);
  const share = (value - option('min')) / (option('max') - option('min'));
  const { x, y } = center(handle);
  return drag({ x, y }, option('orientation') === 'horizontal'
    ? { x: box.left + share * (box.right - box.left), y }
    : { x, y: box.bottom - share * (box.bottom - box.top) });
};

const hexOf = (color) => color.match(/\d+/g).slice(0, 3)
  .map((part) => Number(part).toString(16).padStart(2, '0')).join('').toUpperCase();
const pickColor = (hex) => {
  const wanted = hex.replace('#', '').toUpperCase();
  const input = one('#col');
  // The open picker covers the button.
  return fill(input, wanted) || press(document.activeElement === input ? 'tab' : 'enter');
};

const spin = (value) => {
  const now = Number(one('#spinner').value);
  if (now === value) return submit();
  return click(one(now < value ? '.ui-spinner-up' : '.ui-spinner-down'));
};

Object.assign(ORACLES, {
  'form-sequence': () => {
    const [value, box] = asked(/Select (-?\d+) .* the (\d)/);
    return slide('#slider', Number(value)) || check(one(`#checkbox-${box}`)) || submit();
  },
  'form-sequence-2': () => {
    const [radio, text, field] = asked(/the (\d)\w\w radio .*"(.*)" into the (\d)/);
    return check(one(`input[type=radio][value="${radio}"]`)) ||
      fill(one(`#input-${field}`), text) || submit();
  },
  'form-sequence-3': () => {
    const [option, label] = asked(/Choose (.*) from the dropdown.*"(.*)"/);
    if ($('#dropdown').val() === option) return button(label);
    const item = withText('.selectric-items li', option);
    return isShown(item) ? click(item) : click(one('.selectric'));
  },
  'use-colorwheel': () => pickColor(ui_utils.colorNameToHex(asked(/Select (.*) with/)[0])),
  'use-colorwheel-2': () => pickColor(hexOf(getComputedStyle(one('.cc')).backgroundColor)),
  'use-slider': () => slide('#slider', Number(asked(/Select (-?\d+)/)[0])) || submit(),
  'use-slider-2': () => {
    const values = JSON.parse(asked(/(\[.*\])/)[0]);
    return slide('#slider-1', values[0]) || slide('#slider-2', values[1]) ||
      slide('#slider-3', values[2]) || submit();
  },
  'use-spinner': () => spin(Number(asked(/Select (-?\d+)/)[0])),
});
