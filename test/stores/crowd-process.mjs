import { connect } from "../../dist/index.js";

const [url, calls] = process.argv.slice(2);
const locks = await connect(url, { waitMs: 60_000 });
let served = 0;
const serve = () => {
  served += 1;
};
const crowd = Array.from({ length: Number(calls) }, () => locks.mutex("several").run(serve));
await Promise.all(crowd);
await locks.close();
process.send?.(served);
process.disconnect();
