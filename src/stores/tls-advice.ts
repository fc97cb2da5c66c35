/** Remedies for failures of Node to make a connection with TLS, by the text of the failure. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/altnames/, "the certificate of the server is for another host name"],
  [/certificate (has expired|is not yet valid)/, "the certificate, or a clock, is wrong"],
  [
    /self-signed certificate|unable to (verify|get (local )?issuer)/,
    "no known authority signed the certificate of the server: name the file of its own by ca=",
  ],
  [
    /alert (certificate|bad cert|unknown ca|handshake)/i,
    "the server wants a certificate of the client that it trusts: name its files by cert= and key=",
  ],
  [
    /wrong version number|packet length too long|not support SSL/,
    "the server does not speak TLS there",
  ],
];

/** Null where the failure has nothing to do with TLS. */
export function tlsAdvice(text: string): string | null {
  return ADVICE.find(([pattern]) => pattern.test(text))?.[1] ?? null;
}
