// What a test asks of a page, in words of its own.
const colour = s => (s.match(/[\d.]+/g) || []).map(Number);
const over = (top, under) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => a * top[i] + (1 - a) * under[i]); };
// https://www.w3.org/TR/WCAG22/#dfn-relative-luminance and #dfn-contrast-ratio
const luminance = c => c.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (a, b) => { const [l, m] = [luminance(a), luminance(b)].sort((x, y) => y - x); return (l + 0.05) / (m + 0.05); };
const shown = e => e.checkVisibility({ contentVisibilityAuto: true, opacityProperty: true, visibilityProperty: true }) && e.getBoundingClientRect().width > 0 && e.getBoundingClientRect().height > 0;

// background is what is behind an element: the backgrounds of all it lies in, one over the other.
function background(e) {
  const under = e.parentElement ? background(e.parentElement) : [255, 255, 255];
  const own = colour(getComputedStyle(e).backgroundColor);
  return own.length < 3 ? under : over(own, under);
}

// behindText adds to the background, for the text of a chart, the shapes that were drawn there before it.
function behindText(e) {
  let under = background(e);
  if (!(e instanceof SVGElement)) return under;
  const box = e.getBoundingClientRect(), middle = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
  for (const shape of e.ownerSVGElement.querySelectorAll('path, rect')) {
    if (!(shape.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
    const fill = colour(getComputedStyle(shape).fill);
    if (fill.length >= 3 && shape.isPointInFill(middle.matrixTransform(shape.getScreenCTM().inverse()))) under = over(fill, under);
  }
  return under;
}

// texts are the elements that themselves hold text that is shown.
function texts() {
  return [...document.body.querySelectorAll('*')].filter(e => shown(e) && [...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && n.data.trim()));
}

function faint(least) {
  return texts().flatMap(e => {
    const style = getComputedStyle(e), behind = behindText(e);
    const ratio = contrast(over(colour(e instanceof SVGElement ? style.fill : style.color), behind), behind);
    return ratio < least ? [`${ratio.toFixed(2)} <${e.tagName.toLowerCase()} class="${e.getAttribute('class') ?? ''}"> ${e.textContent.trim().slice(0, 40)}`] : [];
  });
}

// sticksOut are the elements beyond the window's edge that no box of their own scrolls.
function sticksOut() {
  const boxed = e => e.parentElement && (getComputedStyle(e.parentElement).overflowX !== 'visible' || boxed(e.parentElement));
  return [...document.body.querySelectorAll('*')].filter(e => (e.getBoundingClientRect().right > innerWidth || e.getBoundingClientRect().left + e.scrollWidth > innerWidth) && getComputedStyle(e).overflowX === 'visible' && !boxed(e)).slice(0, 5)
    .map(e => `<${e.tagName.toLowerCase()} class="${e.getAttribute('class') ?? ''}"> ${e.textContent.trim().slice(0, 40)}`);
}

// focused tells of the element with the focus: what it is, and whether a ring shows it.
function focused() {
  const e = document.activeElement, style = getComputedStyle(e);
  return { name: e.tagName.toLowerCase(), text: e.textContent.trim().slice(0, 40), ring: e.matches(':focus-visible') && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 };
}
