// Takes locks of redsync, as told on standard input: "acquire name", "try name", "release".
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const ttl = 30 * time.Second

func main() {
	client := redis.NewClient(&redis.Options{Addr: os.Args[1]})
	sync := redsync.New(goredis.NewPool(client))
	var held *redsync.Mutex
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		verb, name, _ := strings.Cut(lines.Text(), " ")
		if verb == "release" {
			if isHeld, err := held.Unlock(); isHeld && err == nil {
				fmt.Println("released")
			} else {
				fmt.Println("lost")
			}
			continue
		}
		tries := 1
		if verb == "acquire" {
			tries = 1_000_000
		}
		mutex := sync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(tries),
			redsync.WithRetryDelay(20*time.Millisecond))
		if err := mutex.Lock(); err != nil {
			fmt.Println("busy")
			continue
		}
		held = mutex
		fmt.Println("granted")
	}
}
