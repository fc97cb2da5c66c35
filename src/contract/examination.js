export function checksOver() {
    return (id, needs, judge) => ({
        id,
        judge(facts, ttlMs) {
            const known = {};
            for (const name of needs) {
                const fact = facts[name];
                if ("unknownBecause" in fact) {
                    return { id, severity: "skipped", what: fact.unknownBecause };
                }
                known[name] = fact.value;
            }
            const verdict = judge(known, ttlMs);
            return verdict && { id, ...verdict };
        },
    });
}
export const ok = (what) => ({ severity: "ok", what });
const judged = (severity) => (what, why, remedy) => remedy === undefined ? { severity, what, why } : { severity, what, why, remedy };
export const note = judged("note");
export const warning = judged("warning");
export const danger = judged("danger");
