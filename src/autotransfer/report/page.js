"use strict";
// Sorts and filters the table of settings. Without scripts the table is simply there.
(() => {
  document.documentElement.classList.add("scripted");

  const value = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    const number = Number(text);
    return text === "" ? null : Number.isNaN(number) ? text : number;
  };

  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        // Numbers begin with the largest: that is what one looks for.
        const first = head.classList.contains("figure") ? "descending" : "ascending";
        const other = first === "ascending" ? "descending" : "ascending";
        const order = head.getAttribute("aria-sort") === first ? other : first;
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const rows = [...table.tBodies[0].rows].map((row) => [value(row, column), row]);
        // What has no value stands last in either order.
        rows.sort(([a], [b]) =>
          a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    });
  }

  const filter = document.getElementById("filter");
  if (filter) {
    const rows = [...document.getElementById("tried").tBodies[0].rows];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      rows.forEach((row, i) => {
        row.hidden = !words.every((word) => texts[i].includes(word));
        count += !row.hidden;
      });
      document.getElementById("shown").textContent = `${count} of ${rows.length} rows`;
    });
  }
})();
