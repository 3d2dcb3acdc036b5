"use strict";
// A link to a part that is folded unfolds it.
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  if (!target) return;
  const within = target.closest("details") ?? target.querySelector(":scope > details");
  if (within) within.open = true;
  target.scrollIntoView();
}

addEventListener("hashchange", unfold);
unfold();

// Paper has no folds: what was closed is open while the page is printed.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  closed.forEach((each) => { each.open = true; });
});
addEventListener("afterprint", () => closed.forEach((each) => { each.open = false; }));
