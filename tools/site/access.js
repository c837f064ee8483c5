// SPDX-License-Identifier: Apache-2.0
// What the theme leaves out for people who use a keyboard, or who hear the page.
(() => {
  const complete = () => {
    document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
    // What is too wide scrolls in a frame of its own. Those of tables are made by the theme while the page loads.
    for (const frame of document.querySelectorAll(":is(.md-typeset__scrollwrap, p:has(> img[src$='.svg'])):not([tabindex])")) {
      frame.setAttribute("tabindex", "0");
      frame.setAttribute("role", "region");
      frame.setAttribute("aria-label", frame.querySelector("img")?.alt ?? "Table");
    }
  };
  complete();
  new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
})();
