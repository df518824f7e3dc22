/* What is wrong with a page for those who cannot see it, or not well: a list of sentences. */
() => {
  const problems = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const say = (problem, element) => {
    const where = element ? `: <${element.tagName.toLowerCase()} class="${element.getAttribute("class") || ""}"> ${(element.textContent || "").trim().slice(0, 40)}` : "";
    problems.push(problem + where);
  };
  const named = (element) => {
    const label = element.getAttribute("aria-label");
    const by = (element.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean);
    const texts = by.map((id) => document.getElementById(id)).map((part) => (part ? part.textContent.trim() : ""));
    return Boolean((label && label.trim()) || (texts.length && texts.every(Boolean)));
  };

  if (!document.documentElement.lang) say("no language");
  if (!document.title.trim()) say("no title");
  for (const landmark of ["header", "nav", "main", "footer"]) {
    if (all(`body > ${landmark}`).length !== 1) say(`not one ${landmark}`);
  }
  for (const nav of all("nav")) if (!named(nav)) say("navigation without a name", nav);
  const levels = all("h1, h2, h3, h4, h5, h6").map((head) => Number(head.tagName[1]));
  if (levels[0] !== 1 || levels.filter((level) => level === 1).length !== 1) say("not one h1, or not first");
  levels.forEach((level, place) => {
    if (place && level > levels[place - 1] + 1) say(`h${level} after h${levels[place - 1]}`);
  });
  for (const head of all("h1, h2, h3")) if (!head.textContent.trim()) say("empty heading", head);
  const ids = all("[id]").map((element) => element.id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) say(`id ${id} twice`);
  for (const link of all("a")) {
    if (!link.textContent.trim() && !named(link)) say("link without text", link);
    const target = link.getAttribute("href") || "";
    if (!target.startsWith("#") || !document.getElementById(decodeURIComponent(target.slice(1)))) say(`link to nowhere ${target}`, link);
  }
  for (const drawing of all("svg")) {
    if (drawing.getAttribute("role") !== "img" || !named(drawing)) say("drawing without role or name", drawing);
  }
  for (const picture of all("img")) if (!picture.alt) say("picture without words", picture);
  for (const input of all("input, select, textarea")) if (!input.labels.length && !named(input)) say("input without a label", input);
  for (const button of all("button")) if (!button.textContent.trim() && !named(button)) say("button without text", button);
  for (const region of all("[role=region], [role=group]")) if (!named(region)) say("region without a name", region);
  for (const table of all("table")) {
    const region = table.closest("[role=region]");
    if (!(table.caption && table.caption.textContent.trim()) && !(region && named(region))) say("table without a name", table);
    if (!table.tHead) say("table without heads", table);
  }
  for (const head of all("th")) if (!head.scope) say("head without scope", head);
  for (const part of all("details")) if (!part.querySelector(":scope > summary")) say("details without summary", part);
  for (const part of all("*")) {
    const style = getComputedStyle(part);
    const scrolls = /auto|scroll/.test(style.overflowX) && part.scrollWidth > part.clientWidth + 1;
    if (scrolls && part.tabIndex < 0) say("scrolls and no key reaches it", part);
    if (part.tabIndex > 0) say("positive tabindex", part);
  }

  /* Contrast of every text that is shown, against what is painted behind it. */
  const parse = (text) => {
    const found = text.match(/[\d.]+/g);
    if (!found || !/^rgb/.test(text)) return null;
    const [r, g, b, a = 1] = found.map(Number);
    return [r, g, b, a];
  };
  const over = (top, below) => [0, 1, 2].map((n) => top[n] * top[3] + below[n] * (1 - top[3])).concat(1);
  const ground = (element) => {
    const layers = [];
    for (let part = element; part; part = part.parentElement) {
      const colour = parse(getComputedStyle(part).backgroundColor);
      if (colour && colour[3] > 0) layers.push(colour);
      if (colour && colour[3] === 1) break;
    }
    const paper = parse(getComputedStyle(document.body).backgroundColor);
    return layers.reverse().reduce((below, top) => over(top, below), paper);
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const faint = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script, style, title, desc")) continue;
    if (!element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    const style = getComputedStyle(element);
    const drawn = element.closest("svg");
    const colour = parse(drawn ? style.fill : style.color);
    if (!colour) continue;
    const behind = ground(element);
    const [light, dark] = [luminance(over(colour, behind)), luminance(behind)].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) {
      const key = `${style.color} on ${behind.map(Math.round)}`;
      if (!faint.has(key)) faint.set(key, [ratio, element]);
    }
  }
  for (const [key, [ratio, element]] of faint) say(`contrast ${ratio.toFixed(2)}, ${key}`, element);
  return problems;
}
