package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

var candidates = map[string]func(url string) (Locker, error){
	"raw":         openRaw,
	"redsync":     openRedsync,
	"redislock":   openRedislock,
	"rueidislock": openRueidislock,
	"etcd raw":    openEtcdRaw,
	"etcd":        openEtcd,
}

var compareAndDelete = redis.NewScript(
	`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

func openRaw(address string) (Locker, error) {
	client := redis.NewClient(&redis.Options{Addr: address})
	return func(ctx context.Context, name string) (func() error, error) {
		random := make([]byte, 16)
		_, _ = rand.Read(random)
		value := hex.EncodeToString(random)
		done, err := client.SetNX(ctx, name, value, ttl).Result()
		if err == nil && !done {
			err = errors.New("the raw pair met contention")
		}
		release := func() error {
			return compareAndDelete.Run(ctx, client, []string{name}, value).Err()
		}
		return release, err
	}, nil
}

func openRedsync(address string) (Locker, error) {
	pool := goredis.NewPool(redis.NewClient(&redis.Options{Addr: address}))
	sync := redsync.New(pool)
	return func(ctx context.Context, name string) (func() error, error) {
		mutex := sync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(1_000_000),
			redsync.WithRetryDelay(retryEvery))
		err := mutex.LockContext(ctx)
		return func() error { _, err := mutex.UnlockContext(ctx); return err }, err
	}, nil
}

func openRedislock(address string) (Locker, error) {
	locks := redislock.New(redis.NewClient(&redis.Options{Addr: address}))
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(retryEvery)}
	return func(ctx context.Context, name string) (func() error, error) {
		lock, err := locks.Obtain(ctx, name, ttl, options)
		return func() error { return lock.Release(ctx) }, err
	}, nil
}

// A request that takes longer than TryNextAfter fails, and its caller then waits for a message that
// may never come: with the default of 20 ms, 1,000 tasks at once hang. With one key there is no next
// one to try. Workers of two processes at one name hang now and then all the same.
func openRueidislock(address string) (Locker, error) {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{address}},
		KeyMajority:  1,
		KeyValidity:  ttl,
		TryNextAfter: ttl,
	})
	return func(ctx context.Context, name string) (func() error, error) {
		_, release, err := locks.WithContext(ctx, name)
		return func() error { release(); return nil }, err
	}, err
}

func openEtcdRaw(endpoint string) (Locker, error) {
	client, lease, err := openEtcdClient(endpoint)
	return func(ctx context.Context, name string) (func() error, error) {
		free := clientv3.Compare(clientv3.CreateRevision(name), "=", 0)
		put := clientv3.OpPut(name, "", clientv3.WithLease(lease))
		answer, err := client.Txn(ctx).If(free).Then(put).Commit()
		if err == nil && !answer.Succeeded {
			err = errors.New("the raw pair met contention")
		}
		return func() error { _, err := client.Delete(ctx, name); return err }, err
	}, err
}

func openEtcd(endpoint string) (Locker, error) {
	client, lease, err := openEtcdClient(endpoint)
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithLease(lease))
	return func(ctx context.Context, name string) (func() error, error) {
		mutex := concurrency.NewMutex(session, name)
		err := mutex.Lock(ctx)
		return func() error { return mutex.Unlock(ctx) }, err
	}, err
}

func openEtcdClient(endpoint string) (*clientv3.Client, clientv3.LeaseID, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{endpoint},
		DialTimeout: 5 * time.Second,
	})
	if err != nil {
		return nil, 0, err
	}
	lease, err := client.Grant(context.Background(), int64(ttl/time.Second))
	if err != nil {
		return nil, 0, err
	}
	kept, err := client.KeepAlive(context.Background(), lease.ID)
	go func() {
		for range kept {
		}
	}()
	return client, lease.ID, err
}
