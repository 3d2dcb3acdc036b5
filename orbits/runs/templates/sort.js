"use strict";
// A click on a heading, or Enter on it, sorts its table; again, the other way round.
const key = (row, column) => row.cells[column].dataset.order ?? row.cells[column].textContent.trim();

function compare(a, b, sign) {
  if (a === "" || b === "") return (a === "") - (b === ""); // what is missing comes last either way
  const difference = a - b;
  return sign * (Number.isNaN(difference) ? a.localeCompare(b, "en", { numeric: true }) : difference);
}

function sort(heading) {
  const headings = [...heading.parentNode.cells];
  const column = headings.indexOf(heading);
  const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  headings.forEach((other) => other.setAttribute("aria-sort", "none"));
  heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  const body = heading.closest("table").tBodies[0];
  body.append(...[...body.rows].sort((one, other) => compare(key(one, column), key(other, column), sign)));
}

document.querySelectorAll("th button").forEach((button) => {
  button.addEventListener("click", () => sort(button.parentNode));
});
