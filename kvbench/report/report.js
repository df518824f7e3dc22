/* What a page does beyond showing: sorting, filtering, hiding a run in the figures.
   Without it the page is whole; nothing here loads or stores anything. */
"use strict";
(() => {
  const ROWS_TO_FILTER = 10; // a shorter table is read faster than a box is used
  const PREFIX = { n: 1e-9, "\u00b5": 1e-6, u: 1e-6, m: 1e-3, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };
  const BINARY = { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40, P: 2 ** 50 };
  const NUMBER = /^[^\w.+-]{0,3}([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?:\s?([KMGTP])i(?=B)|\s?([n\u00b5umkKMGTP])(?=B|s\b|\s|$))?(?=[\s%,;)]|[A-Za-z/]|$)/;
  const make = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  /* The raw number of a cell in base units; NaN where it has none. */
  const number = (cell) => {
    if (!cell) return NaN;
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    const found = NUMBER.exec(cell.textContent.trim());
    if (!found) return NaN;
    return Number(found[1]) * (BINARY[found[2]] || PREFIX[found[3]] || 1);
  };
  const isHead = (row) => row.cells.length === 1 && row.cells[0].colSpan > 1;
  const bodies = (table) => [...table.tBodies].map((body) => ({
    body,
    head: [...body.rows].filter(isHead),
    rows: [...body.rows].filter((row) => !isHead(row)),
  }));

  const sortable = (table, groups) => {
    const heads = [...table.tHead.rows[0].cells];
    const state = { column: -1, way: 0 };
    const order = (column, way) => {
      const all = groups.flatMap((group) => group.rows).map((row) => row.cells[column]);
      const raw = all.some((cell) => cell && cell.dataset.value !== undefined);
      const numeric = raw || all.filter((cell) => !Number.isNaN(number(cell))).length * 2 > all.length;
      for (const group of groups) {
        let rows = group.rows;
        if (way && numeric) {
          const keyed = rows.map((row) => [number(row.cells[column]), row]);
          const known = keyed.filter(([key]) => !Number.isNaN(key));
          known.sort(([a], [b]) => (a < b ? -way : a > b ? way : 0));
          rows = [...known, ...keyed.filter(([key]) => Number.isNaN(key))].map(([, row]) => row);
        } else if (way) {
          const text = (row) => (row.cells[column] ? row.cells[column].textContent.trim() : "");
          const keyed = rows.map((row) => [text(row), row]);
          keyed.sort(([a], [b]) => way * a.localeCompare(b, "en", { numeric: true }));
          rows = keyed.map(([, row]) => row);
        }
        group.body.append(...rows);
      }
      heads.forEach((head, place) => {
        if (place === column && way) head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
    };
    heads.forEach((head, column) => {
      const button = make("button", { type: "button", class: "sort" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = state.column === column ? state.way : 0;
        state.column = column;
        state.way = before === 0 ? 1 : before === 1 ? -1 : 0; // the third press restores the order
        order(column, state.way);
      });
    });
  };

  const boxes = new WeakMap();
  const filterable = (table, groups, place) => {
    const total = groups.reduce((sum, group) => sum + group.rows.length, 0);
    const region = table.closest(".scroll") || table;
    const name = (table.caption && table.caption.textContent) || region.getAttribute("aria-label") || "the table";
    const id = `filter-${place}`;
    const box = make("input", { type: "search", id, autocomplete: "off", spellcheck: "false" });
    const left = make("span", { role: "status", class: "soft" }, `${total} rows`);
    const label = make("label", { for: id }, "Filter rows", make("span", { class: "unseen" }, ` of ${name.trim()}`));
    let words = null;
    const apply = () => {
      words = words || groups.map((group) => {
        const head = group.head.map((row) => (row.querySelector(".name") || row).textContent).join(" ");
        return group.rows.map((row) => `${head} ${row.textContent}`.toLowerCase());
      });
      const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      groups.forEach((group, g) => {
        let own = 0;
        group.rows.forEach((row, r) => {
          const fits = wanted.every((word) => words[g][r].includes(word));
          row.hidden = !fits;
          own += fits;
        });
        for (const row of group.head) row.hidden = !own;
        count += own;
      });
      left.textContent = wanted.length ? `${count} of ${total} rows` : `${total} rows`;
    };
    box.addEventListener("input", apply);
    boxes.set(table, () => {
      box.value = "";
      apply();
    });
    region.before(make("div", { class: "filter" }, label, box, left));
  };

  const tables = () => {
    let place = 0;
    for (const table of document.querySelectorAll("main table:not(.heat)")) {
      if (!table.tHead || table.tHead.rows.length !== 1) continue;
      const groups = bodies(table);
      const most = Math.max(0, ...groups.map((group) => group.rows.length));
      const total = groups.reduce((sum, group) => sum + group.rows.length, 0);
      if (most > 1) sortable(table, groups);
      if (total >= ROWS_TO_FILTER) filterable(table, groups, (place += 1));
    }
  };

  /* One button per run above the figures; what is pressed is shown, on the whole page. */
  const toggles = () => {
    const places = document.querySelectorAll(".toggles");
    if (!places.length) return;
    const drawn = new Map();
    for (const part of document.querySelectorAll("svg [data-side]")) {
      const side = part.dataset.side;
      drawn.set(side, [...(drawn.get(side) || []), part]);
    }
    const hidden = new Set();
    const buttons = [];
    const press = (side) => {
      if (!hidden.delete(side)) hidden.add(side);
      for (const part of drawn.get(side) || []) part.classList.toggle("off", hidden.has(side));
      for (const button of buttons) {
        if (button.dataset.side === side) button.setAttribute("aria-pressed", String(!hidden.has(side)));
      }
    };
    for (const row of places) {
      for (const name of row.querySelectorAll("[data-side]")) {
        const side = name.dataset.side;
        const button = make("button", { type: "button", "aria-pressed": "true", "data-side": side, class: name.className });
        button.append(...name.childNodes);
        button.addEventListener("click", () => press(side));
        name.replaceWith(button);
        buttons.push(button);
      }
      row.hidden = false;
    }
  };

  /* What a link leads to is shown, though a filter hid it or a part of the page is folded. */
  const reveal = () => {
    const name = decodeURIComponent(location.hash.slice(1));
    const target = name && document.getElementById(name);
    if (!target) return;
    const table = target.closest("table");
    const clear = table && target.closest("tr[hidden]") && boxes.get(table);
    if (clear) clear();
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    target.scrollIntoView();
  };

  tables();
  toggles();
  addEventListener("hashchange", reveal);
  reveal();
})();
