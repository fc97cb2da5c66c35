import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryOneTime;

/** Takes locks of Curator, as told on standard input: "acquire mutex /path", "try write /path", "release". */
public class Contender {
  static final int SESSION_MS = 4_000;
  static final int TRY_MS = 500;

  public static void main(String[] args) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(args[0], SESSION_MS, SESSION_MS, new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    System.out.println("ready");
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    InterProcessLock held = null;
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] words = line.split(" ");
      if (words[0].equals("release")) {
        held.release();
        System.out.println("released");
        continue;
      }
      InterProcessLock lock = lockOf(client, words[1], words[2]);
      boolean isGranted = true;
      if (words[0].equals("try")) isGranted = lock.acquire(TRY_MS, TimeUnit.MILLISECONDS);
      else lock.acquire();
      if (isGranted) held = lock;
      System.out.println(isGranted ? "granted" : "busy");
    }
    client.close();
  }

  static InterProcessLock lockOf(CuratorFramework client, String kind, String path) {
    if (kind.equals("mutex")) return new InterProcessMutex(client, path);
    InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
    return kind.equals("write") ? both.writeLock() : both.readLock();
  }
}
