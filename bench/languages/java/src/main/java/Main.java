import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Function;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RScript;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** The Java contestants: `Main CANDIDATE URL` takes one order per line, answers each with one. */
public final class Main {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long TTL_MS = 30_000;
  private static final String COMPARE_AND_DELETE =
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

  /** Acquires a lock and returns its release. */
  interface Locker {
    Runnable acquire(String name);
  }

  interface Task<T> {
    T run(int index) throws Exception;
  }

  public static void main(String[] args) throws Exception {
    Locker locker = open(args[0], args[1]);
    System.out.println("\"ready\"");
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      JsonNode order = JSON.readTree(line);
      double startMs = nowMs();
      double startUs = cpuUs();
      List<List<double[]>> holds = List.of();
      if (order.get("do").asText().equals("turns")) holds = turns(locker, order);
      else pairs(locker, order);
      Map<String, Object> answer =
          Map.of("elapsedMs", nowMs() - startMs, "cpuUs", cpuUs() - startUs, "holds", holds);
      System.out.println(JSON.writeValueAsString(answer));
    }
    System.exit(0);
  }

  private static Locker open(String candidate, String address) throws Exception {
    return switch (candidate) {
      case "raw" -> raw(redisson(address));
      case "RLock" -> locks(redisson(address)::getLock);
      case "RFairLock" -> locks(redisson(address)::getFairLock);
      case "zookeeper raw" -> ZookeeperLockers.raw(address);
      case "InterProcessMutex" -> ZookeeperLockers.mutex(address);
      default -> throw new IllegalArgumentException("no candidate " + candidate);
    };
  }

  private static RedissonClient redisson(String address) {
    Config config = new Config();
    config.useSingleServer().setAddress("redis://" + address);
    return Redisson.create(config);
  }

  private static Locker locks(Function<String, RLock> byName) {
    return name -> {
      RLock lock = byName.apply(name);
      lock.lock();
      return lock::unlock;
    };
  }

  private static Locker raw(RedissonClient client) {
    RScript script = client.getScript(StringCodec.INSTANCE);
    String sha = script.scriptLoad(COMPARE_AND_DELETE);
    return name -> {
      String value = java.util.UUID.randomUUID().toString();
      var ttl = java.time.Duration.ofMillis(TTL_MS);
      if (!client.getBucket(name, StringCodec.INSTANCE).setIfAbsent(value, ttl)) {
        throw new IllegalStateException("the raw pair met contention");
      }
      return () ->
          script.evalSha(
              RScript.Mode.READ_WRITE, sha, RScript.ReturnType.LONG, List.of(name), value);
    };
  }

  /** Runs several tasks at once, each on a name of its own. */
  private static void pairs(Locker locker, JsonNode order) throws Exception {
    int pairs = order.get("pairs").asInt();
    together(
        order.get("tasks").asInt(),
        task -> {
          String name = order.get("lock").asText() + ":" + task;
          for (int pair = 0; pair < pairs; pair++) locker.acquire(name).run();
          return null;
        });
  }

  /** Contends for one name with several workers and tells every hold. */
  private static List<List<double[]>> turns(Locker locker, JsonNode order) throws Exception {
    double untilMs = nowMs() + order.get("forMs").asDouble();
    String lock = order.get("lock").asText();
    JsonNode holdMs = order.path("holdMs");
    long restMs = order.path("restMs").asLong(0);
    return together(
        order.get("workers").asInt(),
        worker -> {
          List<double[]> own = new ArrayList<>();
          while (nowMs() < untilMs) {
            double askedMs = nowMs();
            Runnable release = locker.acquire(lock);
            double heldMs = nowMs();
            if (holdMs.size() > 0) Thread.sleep(holdMs.get(own.size() % holdMs.size()).asLong());
            own.add(new double[] {askedMs, heldMs, nowMs()});
            release.run();
            if (restMs > 0) Thread.sleep(restMs);
          }
          return own;
        });
  }

  /** A lock of Redisson or Curator belongs to a thread, so each task has one. */
  private static <T> List<T> together(int count, Task<T> task) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(count);
    try {
      List<Future<T>> futures = new ArrayList<>();
      for (int index = 0; index < count; index++) {
        int own = index;
        futures.add(pool.submit(() -> task.run(own)));
      }
      List<T> results = new ArrayList<>();
      for (Future<T> future : futures) results.add(future.get());
      return results;
    } finally {
      pool.shutdown();
    }
  }

  private static double nowMs() {
    return System.nanoTime() / 1e6;
  }

  private static double cpuUs() {
    var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    return system.getProcessCpuTime() / 1e3;
  }
}
