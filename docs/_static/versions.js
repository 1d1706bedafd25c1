/* Addresses in versions.json are relative to the root of the site. The theme writes them into the
   menu as they are, where a browser takes them relative to the page. */
document.addEventListener("DOMContentLoaded", () => {
  const root = new URL(document.documentElement.dataset.content_root, document.baseURI);
  for (const menu of document.querySelectorAll(".version-switcher__menu")) {
    new MutationObserver(() => {
      for (const link of menu.querySelectorAll('a[href^="."]')) {
        link.href = new URL(link.getAttribute("href"), root);
      }
    }).observe(menu, { childList: true });
  }
});
