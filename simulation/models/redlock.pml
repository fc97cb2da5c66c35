/*
 * The quorum rules of the Redlock store, in every order of events: three nodes, two clients, one
 * name. The same rules in code: see docs/stores/redlock.md. How it is run: redlock.test.ts.
 *
 * Time is a tick that shortens all that is left: of a key at a node, of a belief, of the wait of a
 * restarted node. Clocks of clients show anything: a proposal is any ballot, and a raise any higher
 * one. A message that was sent arrives at any node at any later time, again and again, or never;
 * its answer is lost, or comes, and is acted on at any later time. Nodes crash, and come back empty
 * or with what they had saved, at most one of them at a time.
 *
 * Asserted: no two believe at the same time; every grant has higher tokens than all before it, and
 * no lower one is believed in again; no node takes a key from another owner, nor again what was
 * given back there.
 *
 * Each rule can be dropped, by -DNO_ABOVE and so on. Further events are chosen by CRASHES, SAVES,
 * RENEWS, RESUMES, LONG. WITNESS claims that something good never happens.
 */
#ifndef OWNERS
#define OWNERS 3 /* attempts to acquire, of both clients together */
#endif
#ifndef ROUNDS
#define ROUNDS 3 /* rounds of votes, of both clients together */
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef BALLOTS
#define BALLOTS 3
#endif

#define N 3
#define C 2
#define MAJORITY 2

/* A ballot has two tokens, itself and the next; a release stores the second of them. */
#define SPAN 2
#ifdef NO_BLOCKS
#define BLOCK(b) (b)
#else
#define BLOCK(b) (SPAN * (b))
#endif

/* Leases last a tick; those that are renewed, and long ones, two. */
#if defined(RENEWS)
#define TTL(o) 2
#define LONGEST 2
#elif defined(LONG)
#define TTL(o) (1 + isLong[o])
#define LONGEST 1
#else
#define TTL(o) 1
#define LONGEST 1
#endif

#define IDLE 0
#define ASKS 1
#define HOLDS 2
#define RESUMES_IT 3

#define VOTES 0
#define UNMARKED 1
#define YOUNG 2

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define HAS(mask, n) (((mask) >> (n)) & 1)
#define COUNT(mask) (HAS(mask, 0) + HAS(mask, 1) + HAS(mask, 2))
#define ONE(n) (((n) + 1) % N)
#define OTHER(n) (((n) + 2) % N)

/* A node: whose the key is, for how long; the stored ballot; the highest that it voted for. */
byte lock[N], left[N], stored[N], top[N];
/* The stored ballot is a floor, and maybe none of this name. */
bit isFloor[N];
/* The marker of a node: whether it votes, after which wait, and how long leases may be. */
byte state[N], wait[N], longest[N];
/* The owners whose release it has executed in this life. */
byte closed[N];

/* The state that the first node has saved. */
byte savedLock, savedLeft, savedStored, savedTop;
bit isSaved;

/* A client: what it does, for which owner and ballot, for how long it may believe, who voted. */
byte phase[C], owner[C], ballot[C], belief[C], votes[C];
/* The renewal under way: what is left of it, who renewed, who of them had kept the lease. */
byte renewal[C], renewed[C], kept[C];

/* A handle that was passed on: a client that has it resumes the lease at any time. */
byte handed, handedBallot;
/* The nodes that lost a lease and were taken again for it. */
byte retaken;

/* Messages under way: rounds of votes; releases and renewals of owners, with the ballot. */
byte rounds, voteOwner[ROUNDS], voteBallot[ROUNDS];
byte owners, released[OWNERS + 1], renewable[OWNERS + 1];
bit clientOf[OWNERS + 1], isLong[OWNERS + 1];
/* The nodes that said they know of long leases. */
byte announced;

byte highest, crashes, early;
bit isRaised;
hidden byte i, higher;

inline take(n, o, b, s) {
  assert(lock[n] == 0 || lock[n] == o);
#ifdef RENEWS
  assert(!HAS(closed[n], o));
#endif
#if WITNESS == 1
  isRaised = isRaised || lock[n] == o;
#endif
  lock[n] = o;
  left[n] = TTL(o);
  stored[n] = s;
  isFloor[n] = 0;
  retaken = retaken & (255 - (1 << n));
  top[n] = MAX(top[n], b)
}

inline release(o, n) {
#ifdef NO_CLOSE_ABSENT
  stored[n] = (lock[n] == o -> MAX(stored[n], released[o] + 1) : stored[n]);
#else
#ifdef NO_PLUS_ONE
  stored[n] = MAX(stored[n], released[o]);
#else
  stored[n] = MAX(stored[n], released[o] + 1);
#endif
  isFloor[n] = 0;
#endif
  if
  :: lock[n] == o -> lock[n] = 0; left[n] = 0
  :: else
  fi
#ifdef RENEWS
  ; closed[n] = closed[n] | (1 << o)
#endif
}

inline ask(x, b) {
  ballot[x] = b;
  voteOwner[rounds] = owner[x];
  voteBallot[rounds] = b;
  rounds++;
#ifndef NO_EXACT
  votes[x] = 0;
#endif
  belief[x] = TTL(owner[x])
}

inline believe(x) {
  assert(phase[1 - x] != HOLDS || belief[1 - x] == 0)
}

inline accept(x) {
#ifdef NO_SENT
  belief[x] = TTL(owner[x]);
#endif
  assert(ballot[x] > highest);
  highest = ballot[x] + SPAN - 1;
  phase[x] = HOLDS;
  votes[x] = 0;
  believe(x)
}

/* However it ends, it is given back everywhere; nodes hear of it now, later or never. */
inline giveBack(x) {
  released[owner[x]] = ballot[x];
  phase[x] = IDLE;
  owner[x] = 0;
  ballot[x] = 0;
  belief[x] = 0;
  votes[x] = 0;
  renewal[x] = 0;
  renewed[x] = 0;
  kept[x] = 0
}

inline shorten(some) {
  if
  :: some > 0 -> some--
  :: else
  fi
}

#if defined(NO_LATE) || defined(NO_RENEWAL_DEADLINE) || defined(NO_SENT)
#define ENDS_IN_TIME false
#else
#define ENDS_IN_TIME true
#endif

inline tick() {
  i = 0;
  do
  :: i < N ->
    shorten(left[i]);
    lock[i] = (left[i] == 0 -> 0 : lock[i]);
    shorten(wait[i]);
    i++
  :: else -> break
  od;
  shorten(savedLeft);
  savedLock = (savedLeft == 0 -> 0 : savedLock);
  i = 0;
  do
  :: i < C ->
    shorten(belief[i]);
    shorten(renewal[i]);
    if
    :: renewal[i] == 0 -> renewed[i] = 0; kept[i] = 0
    :: else
    fi;
    if
    :: phase[i] != IDLE && belief[i] == 0 && ENDS_IN_TIME -> giveBack(i)
    :: else
    fi;
    i++
  :: else -> break
  od;
  i = 0
}

#define TIME_MATTERS \
  (left[0] + left[1] + left[2] + wait[0] + wait[1] + wait[2] + savedLeft + \
   belief[0] + belief[1] + renewal[0] + renewal[1] > 0)

inline crash(n, keeps) {
  crashes++;
  state[n] = UNMARKED;
  closed[n] = 0;
  lock[n] = keeps * savedLock;
  left[n] = keeps * savedLeft;
  stored[n] = keeps * savedStored;
  top[n] = keeps * savedTop;
  longest[n] = LONGEST;
  isFloor[n] = 1 - keeps;
#ifdef NO_RUN_ID
  state[n] = (keeps -> VOTES : UNMARKED);
#endif
  savedLock = 0;
  savedLeft = 0;
  savedStored = 0;
  savedTop = 0
}

inline mark(n) {
  state[n] = YOUNG;
#ifndef NO_LONGEST
  longest[n] = MAX(longest[n], MAX(longest[ONE(n)], longest[OTHER(n)]));
#endif
#ifndef NO_DELAY
  wait[n] = longest[n];
#endif
#ifdef NO_LATE_FLOOR
  early = MAX(top[ONE(n)], top[OTHER(n)])
#endif
}

inline admit(n) {
  state[n] = VOTES;
#if defined(NO_LATE_FLOOR)
  stored[n] = MAX(stored[n], early);
#elif defined(NO_MAJORITY_FLOOR)
  stored[n] = MAX(stored[n], top[ONE(n)]);
#elif !defined(NO_FLOOR)
  stored[n] = MAX(stored[n], MAX(top[ONE(n)], top[OTHER(n)]));
#endif
  early = 0;
  top[n] = MAX(top[n], stored[n])
}

/* The possible steps: of client x, node n, round k, owner o; with ballot b. */

#define ENABLED(n, o) (state[n] == VOTES && longest[n] >= TTL(o))
#ifdef NO_RAISE_OWN
#define IS_FREE(n, o) (lock[n] == 0)
#else
#define IS_FREE(n, o) (lock[n] == 0 || lock[n] == o)
#endif
#ifdef NO_ABOVE
#define IS_ABOVE(n, o, b) (lock[n] != o || b != stored[n])
#else
#define IS_ABOVE(n, o, b) (b > stored[n])
#endif
#define TAKES(n, o, b) (ENABLED(n, o) && IS_FREE(n, o) && IS_ABOVE(n, o, b))
#define HAS_TAKEN(n, o, b) (ENABLED(n, o) && lock[n] == o && stored[n] == b)
#define ASKER(k) clientOf[voteOwner[k]]
#define IS_ASKED(k) \
  (phase[ASKER(k)] == ASKS && owner[ASKER(k)] == voteOwner[k] && ballot[ASKER(k)] == voteBallot[k])

#define VOTE(k, n) \
  :: d_step { \
      k < rounds && TAKES(n, voteOwner[k], voteBallot[k]) -> \
      take(n, voteOwner[k], voteBallot[k], voteBallot[k]) \
    } \
  :: d_step { \
      k < rounds && HAS_TAKEN(n, voteOwner[k], voteBallot[k]) && IS_ASKED(k) \
        && !HAS(votes[ASKER(k)], n) -> \
      votes[ASKER(k)] = votes[ASKER(k)] | (1 << n) \
    }

#define RELEASE(o, n) \
  :: d_step { released[o] > 0 && (stored[n] <= released[o] || lock[n] == o) -> release(o, n) }

#if !defined(LONG)
#define START(x, b) START_WITH(x, b, 0)
#elif defined(NO_ANNOUNCE)
#define START(x, b) START_WITH(x, b, 0) START_WITH(x, b, 1)
#else
#define START(x, b) START_WITH(x, b, 0) START_WITH(x, b, COUNT(announced) >= MAJORITY)
#endif
#define START_WITH(x, b, is) \
  :: d_step { \
      phase[x] == IDLE && owners < OWNERS && rounds < ROUNDS && (x == 0 || owners > 0) -> \
      owners++; owner[x] = owners; clientOf[owners] = x; isLong[owners] = is; \
      phase[x] = ASKS; ask(x, b) \
    }
#define RAISE(x, b) \
  :: d_step { phase[x] == ASKS && rounds < ROUNDS && b > ballot[x] -> ask(x, b) }
#define BALLOT(x, b) START(x, BLOCK(b)) RAISE(x, BLOCK(b))

#ifdef NO_LATE
#define IN_TIME(x) true
#else
#define IN_TIME(x) (belief[x] > 0)
#endif
#define CLIENT(x) \
  :: d_step { \
      phase[x] == ASKS && COUNT(votes[x]) >= MAJORITY && IN_TIME(x) -> WITNESS_GRANT(x) accept(x) \
    } \
  :: d_step { phase[x] != IDLE -> giveBack(x) }

#ifdef NO_RENEWAL_DEADLINE
#define MAY_RENEW(x) true
#else
#define MAY_RENEW(x) (belief[x] > 0)
#endif
#ifdef RENEWS
#define RENEWAL(x) \
  :: d_step { \
      phase[x] == HOLDS && MAY_RENEW(x) && renewal[x] == 0 -> \
      renewable[owner[x]] = ballot[x]; renewal[x] = TTL(owner[x]) \
    } \
  :: d_step { \
      phase[x] == HOLDS && MAY_RENEW(x) && COUNT(renewed[x]) >= MAJORITY && kept[x] != 0 -> \
      WITNESS_RENEWAL(x) \
      belief[x] = MAX(belief[x], renewal[x]); \
      renewal[x] = 0; renewed[x] = 0; kept[x] = 0; \
      assert(ballot[x] + SPAN - 1 == highest); \
      believe(x) \
    }
#ifdef NO_FREE
#define IS_OPEN(n) true
#else
#define IS_OPEN(n) (lock[n] == 0)
#endif
#ifdef NO_HIGHER
#define IS_HIGHER(n, b) false
#else
#define IS_HIGHER(n, b) (!isFloor[n] && stored[n] > b)
#endif
#ifdef NO_SLEEP
#define MAY_RETAKE(n) true
#else
#define MAY_RETAKE(n) (state[n] == VOTES)
#endif
#ifdef RESUMES
#define WAS_RETAKEN(n) retaken = retaken | (1 << n);
#else
#define WAS_RETAKEN(n)
#endif
#define RENEWER(o) (owner[clientOf[o]] == o && renewal[clientOf[o]] > 0)
#define RENEW(o, n) \
  :: d_step { \
      renewable[o] > 0 && lock[n] == o -> \
      left[n] = TTL(o); \
      if \
      :: RENEWER(o) -> renewed[clientOf[o]] = renewed[clientOf[o]] | (1 << n); \
         kept[clientOf[o]] = kept[clientOf[o]] | (1 << n) \
      :: else \
      fi \
    } \
  :: d_step { renewable[o] > 0 && lock[n] == o && left[n] < TTL(o) -> left[n] = TTL(o) } \
  :: d_step { \
      renewable[o] > 0 && lock[n] != o && IS_OPEN(n) && MAY_RETAKE(n) \
        && !IS_HIGHER(n, renewable[o]) -> \
      higher = MAX(stored[n], renewable[o]); \
      take(n, o, renewable[o], higher); \
      WAS_RETAKEN(n) \
      if \
      :: RENEWER(o) -> renewed[clientOf[o]] = renewed[clientOf[o]] | (1 << n) \
      :: else \
      fi \
    }
#else
#define RENEWAL(x)
#define RENEW(o, n)
#endif

#ifdef RESUMES
#ifdef NO_KEPT
#define KEPT(n) true
#else
#define KEPT(n) (!HAS(retaken, n) && state[n] == VOTES)
#endif
#define RESUMPTION(x) \
  :: d_step { \
      phase[x] == HOLDS && handed == 0 -> \
      handed = owner[x]; handedBallot = ballot[x]; \
      phase[x] = IDLE; owner[x] = 0; ballot[x] = 0; belief[x] = 0; \
      renewal[x] = 0; renewed[x] = 0; kept[x] = 0 \
    } \
  :: d_step { \
      phase[x] == IDLE && handed > 0 && owner[1 - x] != handed && released[handed] == 0 -> \
      owner[x] = handed; ballot[x] = handedBallot; clientOf[handed] = x; \
      phase[x] = RESUMES_IT; belief[x] = TTL(handed); votes[x] = 0 \
    } \
  :: d_step { \
      phase[x] == RESUMES_IT && COUNT(votes[x]) >= MAJORITY && belief[x] > 0 -> \
      WITNESS_RESUMPTION \
      assert(ballot[x] + SPAN - 1 == highest); \
      phase[x] = HOLDS; votes[x] = 0; \
      believe(x) \
    }
#define RESUME(x, n) \
  :: d_step { \
      phase[x] == RESUMES_IT && lock[n] == owner[x] && KEPT(n) && !HAS(votes[x], n) -> \
      left[n] = TTL(owner[x]); votes[x] = votes[x] | (1 << n) \
    }
#else
#define RESUMPTION(x)
#define RESUME(x, n)
#endif

#define OTHERS_VOTE(n) (state[ONE(n)] == VOTES && state[OTHER(n)] == VOTES)
#ifdef SAVES
#define SAVED \
  :: d_step { \
      state[0] == VOTES && !isSaved && crashes < CRASHES -> \
      isSaved = 1; savedLock = lock[0]; savedLeft = left[0]; \
      savedStored = stored[0]; savedTop = top[0] \
    } \
  :: d_step { isSaved && crashes < CRASHES && OTHERS_VOTE(0) -> crash(0, 1) }
#else
#define SAVED
#endif
#ifdef LONG
#define ANNOUNCE(n) \
  :: d_step { \
      state[n] != UNMARKED && longest[n] == LONGEST -> \
      longest[n] = 2; announced = announced | (1 << n) \
    }
#else
#define ANNOUNCE(n)
#endif
/* Without loss of generality the first to crash is the first node. */
#define NODE(n) \
  :: d_step { crashes < CRASHES && n <= crashes && OTHERS_VOTE(n) -> crash(n, 0) } \
  :: d_step { state[n] == UNMARKED && OTHERS_VOTE(n) -> mark(n) } \
  :: d_step { state[n] == YOUNG && wait[n] == 0 && OTHERS_VOTE(n) -> admit(n) } \
  ANNOUNCE(n)

#if WITNESS == 1 /* a grant that needs a node which had voted for the owner at a lower ballot */
#define WITNESS_GRANT(x) assert(!(isRaised && COUNT(votes[x]) == MAJORITY));
#elif WITNESS == 2 /* a grant that needs the vote of a node that restarted */
#define WITNESS_GRANT(x) assert(!(crashes > 0 && COUNT(votes[x]) == MAJORITY && HAS(votes[x], 0)));
#else
#define WITNESS_GRANT(x)
#endif
#if WITNESS == 4 /* a lease that is resumed */
#define WITNESS_RESUMPTION assert(false);
#else
#define WITNESS_RESUMPTION
#endif
#if WITNESS == 3 /* a renewal that needs a node that was taken again */
#define WITNESS_RENEWAL(x) assert(COUNT(kept[x]) >= MAJORITY);
#else
#define WITNESS_RENEWAL(x)
#endif

#define NODES(what, x) what(x, 0) what(x, 1) what(x, 2)

active proctype world() {
  d_step {
    i = 0;
    do
    :: i < N -> longest[i] = LONGEST; i++
    :: else -> break
    od;
    i = 0
  }
end:
  do
  :: d_step { TIME_MATTERS -> tick() }
  CLIENT(0) CLIENT(1)
  RENEWAL(0) RENEWAL(1)
  RESUMPTION(0) RESUMPTION(1)
  NODES(RESUME, 0) NODES(RESUME, 1)
  BALLOT(0, 1) BALLOT(0, 2) BALLOT(1, 1) BALLOT(1, 2)
#if BALLOTS > 2
  BALLOT(0, 3) BALLOT(1, 3)
#endif
  NODES(VOTE, 0) NODES(VOTE, 1)
  NODES(RELEASE, 1) NODES(RELEASE, 2)
  NODES(RENEW, 1) NODES(RENEW, 2)
#if ROUNDS > 2
  NODES(VOTE, 2)
#endif
#if ROUNDS > 3
  NODES(VOTE, 3)
#endif
#if OWNERS > 2
  NODES(RELEASE, 3) NODES(RENEW, 3)
#endif
  NODE(0) NODE(1) NODE(2)
  SAVED
  od
}
