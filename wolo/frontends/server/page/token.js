// Takes the token out of the address before anything else is loaded; a reload finds it in the storage of this tab.
let serverToken = new URLSearchParams(location.search).get("token");
if (serverToken) history.replaceState(null, "", `/page/index.html${location.hash}`);
try {
  if (serverToken) sessionStorage.setItem("token", serverToken);
  serverToken ??= sessionStorage.getItem("token");
} catch { /* storage is switched off: a reload needs the printed address again */ }
