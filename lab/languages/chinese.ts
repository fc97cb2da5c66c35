import type { Language } from "./language.js";

const SUBJECTS = {
  "Rung 1: SETNX, DEL": "层次 1：SETNX、DEL",
  "Rung 1½: SETNX, then EXPIRE": "层次 1½：先 SETNX，再 EXPIRE",
  "Rung 2: SET NX PX, plain DEL": "层次 2：SET NX PX，直接 DEL",
  "Rung 3: random value, compare and delete": "层次 3：随机值，比较后删除",
  "Rung 4: a retry that knows its own value": "层次 4：重试时认得自己的值",
  "Rung 5: a watchdog": "层次 5：看门狗",
  "Rung 5: a watchdog that sets its own interval": "层次 5：过期时间等于间隔的看门狗",
  "Rung 6a: WAIT for a replica": "层次 6a：用 WAIT 等从节点",
  "Rung 6b: Redlock as published": "层次 6b：按原文实现的红锁",
  "Rung W: spinning": "层次 W：自旋",
  "Holdfast on Redis": "Holdfast 的 redis 存储",
  "Holdfast on Redis, with a fence": "Holdfast 的 redis 存储，加围栏",
  "Holdfast on five Redis servers": "Holdfast 的 redlock 存储，五台 Redis",
};

const FAULTS = {
  "the holder is killed": "持有者被杀",
  "the holder is killed after its first command": "持有者在第一条命令之后被杀",
  "the work takes longer than the ttl": "业务比过期时间长",
  "the holder's event loop is blocked past the ttl": "持有者的事件循环被阻塞，超过了过期时间",
  "the holder is stopped between its last check and its write":
    "持有者在最后一次检查和写入之间被暂停",
  "the release arrives after the ttl": "释放请求在过期之后才到",
  "the reply to the acquire is lost": "加锁的响应丢失",
  "a late copy of the acquire arrives after the release": "加锁请求的副本在释放之后才到",
  "requests are slow, and the work takes longer than the ttl": "请求变慢，业务比过期时间长",
  "the master dies before it replicates": "主节点在复制之前宕机",
  "the master dies before WAIT, and the client repeats WAIT at the new one":
    "主节点在 WAIT 之前宕机，客户端在新的主节点上重发 WAIT",
  "a replica takes over that had not received the lock": "被提升的从节点没有收到这把锁",
  "a server restarts without its data, or a file is deleted":
    "一台服务器丢了数据重启，或者文件被删",
  "the clock of a server jumps ahead by a minute": "一台服务器的时钟往前跳了一分钟",
  "the first one that waits is far from the server": "最先等待的进程离服务器远",
};

const PRICES = {
  "what it costs that a replica has the lock": "让从节点也有这把锁的代价",
  "One Redis with one replica on the same machine; the lock of rung 3.":
    "一台 Redis 和它的一个从节点，在同一台机器上；层次 3 的锁。",
  "without WAIT": "不用 WAIT",
  "WAIT 1": "WAIT 1",
  "what it costs that a lock survives a restart of its server": "让锁在服务器重启后还在的代价",
  "`appendfsync` of one Redis; the lock of rung 3.": "一台 Redis 的 `appendfsync`；层次 3 的锁。",
  "no log": "不写日志",
  "appendfsync no": "appendfsync no",
  "appendfsync everysec": "appendfsync everysec",
  "appendfsync always": "appendfsync always",
  "two writes with fdatasync, without Redis": "不经过 Redis，两次写入加 fdatasync",
  "what a majority costs": "多数派的代价",
  "All nodes are on the same machine and are asked at the same time.":
    "所有节点在同一台机器上，同时询问。",
  "one node": "一个节点",
  "five nodes": "五个节点",
  "requests to the server per handoff": "每次移交产生的请求数",
  "50 waiters with connections of their own; each holds the lock for 10 ms.":
    "50 个等待者，各用自己的连接；每个持有锁 10 毫秒。",
  "spin, every 50 ms": "自旋，每 50 毫秒一次",
  "publish and subscribe": "发布订阅",
  "watch the lock, all of them": "全部监听锁本身",
  "watch the predecessor": "只监听前一个",
  "direct handoff: Holdfast on Redis": "直接移交：Holdfast 的 redis 存储",
  "µs/pair": "微秒/次加解锁",
  "requests/handoff": "请求数/次移交",
  spread: "离散度",
  "× the first": "相对第一行",
  "within the spread": "差异小于离散度",
};

const VERDICTS: readonly (readonly [english: RegExp, chinese: string])[] = [
  [/^held by one at a time$/, "始终只有一个持有者"],
  [/^held by one at a time; (\w+) never had it$/, "始终只有一个持有者，$1 没有拿到锁"],
  [/^(\w+) stopped before the next one began$/, "$1 在下一个持有者开始之前已经停下"],
  [/^two held for (\d+) ms$/, "两个进程同时持有 $1 毫秒"],
  [/^stuck for ever$/, "锁永远卡住"],
  [/^stuck for (\d+) ms$/, "锁卡住 $1 毫秒"],
  [/^ghost for (\d+) ms$/, "幽灵锁存在 $1 毫秒"],
  [/^(\w+) was served before (\w+), which asked first$/, "$1 排到了先来的 $2 前面"],
  [/^the late write of (\w+) took effect$/, "$1 迟到的写入生效了"],
  [/^the late write of (\w+) was refused$/, "$1 迟到的写入被拒绝"],
];

const phrases = new Map(Object.entries({ ...SUBJECTS, ...FAULTS, ...PRICES }));

export const chinese: Language = {
  say(english) {
    const verdict = VERDICTS.find(([pattern]) => pattern.test(english));
    const said = verdict ? english.replace(...verdict) : phrases.get(english);
    if (said === undefined) throw new Error(`There is no Chinese phrase for "${english}".`);
    return said;
  },
  caption: (subject, fault, verdict) => `${subject}。${fault}：${verdict}`,
  measured(title, about, { takenAt, machine, load }) {
    const where = `${takenAt.slice(0, 10)} 测于 ${machine}`;
    return `*实测：${title}。* ${about}取中位数，${where}，负载 ${load.before} 到 ${load.after}。`;
  },
};
