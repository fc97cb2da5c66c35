import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/** Curator's mutex, and the raw requests of the client that Curator uses. */
final class ZookeeperLockers {
  private static final int TIMEOUT_MS = 30_000;
  private static final byte[] NO_DATA = new byte[0];

  private ZookeeperLockers() {}

  static Main.Locker mutex(String address) throws Exception {
    CuratorFramework client = connect(address);
    Map<String, InterProcessMutex> mutexes = new ConcurrentHashMap<>();
    return name -> {
      InterProcessMutex mutex =
          mutexes.computeIfAbsent(name, key -> new InterProcessMutex(client, "/curator/" + key));
      done(mutex::acquire);
      return () -> done(mutex::release);
    };
  }

  static Main.Locker raw(String address) throws Exception {
    ZooKeeper client = connect(address).getZookeeperClient().getZooKeeper();
    String root = "/raw-java";
    if (client.exists(root, false) == null) {
      client.create(root, NO_DATA, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    }
    return name -> {
      String[] path = new String[1];
      String prefix = root + "/" + name + "-";
      CreateMode mode = CreateMode.EPHEMERAL_SEQUENTIAL;
      done(() -> path[0] = client.create(prefix, NO_DATA, Ids.OPEN_ACL_UNSAFE, mode));
      return () -> done(() -> client.delete(path[0], -1));
    };
  }

  private static CuratorFramework connect(String address) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(address, TIMEOUT_MS, TIMEOUT_MS, new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    return client;
  }

  private interface Request {
    void run() throws Exception;
  }

  private static void done(Request request) {
    try {
      request.run();
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }
}
