export function routeOf(hash) {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page, space = "", name = ""] = path.split("/");
  if (page === "lock" && name !== "") return { page, space, name: decoded(name) };
  if (page === "leases" || page === "doctor") return { page };
  const query = new URLSearchParams(search);
  return {
    page: "locks",
    prefix: query.get("prefix") ?? "",
    space: query.get("space") ?? "",
    offset: Number(query.get("offset")) || 0,
  };
}
export function addressOf(route) {
  if (route.page === "lock") return `#/lock/${route.space}/${encodeURIComponent(route.name)}`;
  if (route.page !== "locks") return `#/${route.page}`;
  const query = new URLSearchParams();
  if (route.prefix !== "") query.set("prefix", route.prefix);
  if (route.space !== "") query.set("space", route.space);
  if (route.offset > 0) query.set("offset", `${route.offset}`);
  return query.size > 0 ? `#/?${query}` : "#/";
}
export function addressOfLock({ space, name }) {
  return addressOf({ page: "lock", space, name });
}
export function queryOf(route) {
  if (route.page === "lock") {
    return `${new URLSearchParams({ view: "lock", space: route.space, name: route.name })}`;
  }
  if (route.page !== "locks") return `view=${route.page}`;
  const { prefix, space, offset } = route;
  return `${new URLSearchParams({ view: "locks", prefix, space, offset: `${offset}` })}`;
}
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
