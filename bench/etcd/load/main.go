// Closed-loop load on an etcd cluster: puts to its leader, N in flight, over a few connections.
//
// It waits for a leader, puts for the time of warming up, prints `begins`, goes on for the time of the window, prints
// `ends`, and then a line of JSON: puts, seconds, latencies in microseconds, syncs of the leader's log, and how many puts
// failed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

var (
	endpoints   = flag.String("endpoints", "", "HOST:PORT of every member, separated by commas")
	inFlight    = flag.Int("inflight", 1, "puts that are always on their way")
	connections = flag.Int("connections", 8, "connections at most")
	valueBytes  = flag.Int("value-bytes", 256, "bytes of each value")
	warmUp      = flag.Duration("warmup", time.Second, "how long to put before the window")
	window      = flag.Duration("window", 3*time.Second, "how long to measure")
	patience    = flag.Duration("patience", time.Minute, "how long to wait for a leader")
)

// The keys are few, so that it is the log that is measured and not the index.
const keysPerClient = 16

type report struct {
	Puts          int                `json:"puts"`
	Seconds       float64            `json:"seconds"`
	PutsPerSecond float64            `json:"puts_per_second"`
	LatencyUs     map[string]float64 `json:"latency_us"`
	Fsyncs        float64            `json:"fsyncs"`
	Failed        int                `json:"failed"`
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, cancel := context.WithTimeout(context.Background(), *patience)
	defer cancel()
	leader, err := findLeader(ctx, strings.Split(*endpoints, ","))
	if err != nil {
		return err
	}
	var clients []pb.KVClient
	for range min(*connections, *inFlight) {
		conn, err := dial(leader)
		if err != nil {
			return err
		}
		defer conn.Close()
		clients = append(clients, pb.NewKVClient(conn))
	}
	// A put before the clock runs: connections are open then.
	for _, client := range clients {
		if _, err := client.Put(ctx, &pb.PutRequest{Key: []byte("first")}, grpc.WaitForReady(true)); err != nil {
			return fmt.Errorf("the first put: %w", err)
		}
	}
	return measure(leader, clients)
}

func dial(endpoint string) (*grpc.ClientConn, error) {
	return grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// findLeader asks the members until one says that it leads.
func findLeader(ctx context.Context, endpoints []string) (string, error) {
	clients := map[string]pb.MaintenanceClient{}
	for _, endpoint := range endpoints {
		conn, err := dial(endpoint)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		clients[endpoint] = pb.NewMaintenanceClient(conn)
	}
	for ctx.Err() == nil {
		for endpoint, client := range clients {
			status, err := client.Status(ctx, &pb.StatusRequest{})
			if err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId {
				return endpoint, nil
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return "", fmt.Errorf("no member of %v leads within %v", endpoints, *patience)
}

// measure keeps one put of each of so many goroutines on its way.
func measure(leader string, clients []pb.KVClient) error {
	start := time.Now()
	begin := start.Add(*warmUp)
	end := begin.Add(*window)
	latencies := make([][]time.Duration, *inFlight)
	failures := make([]int, *inFlight)
	committed := make([]int, *inFlight)
	var waiting sync.WaitGroup
	for client := range *inFlight {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			kv := clients[client%len(clients)]
			value := []byte(strings.Repeat(".", *valueBytes))
			for number := 0; ; number++ {
				at := time.Now()
				if !at.Before(end) {
					return
				}
				key := fmt.Appendf(nil, "client-%d-key-%d", client, number%keysPerClient)
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				_, err := kv.Put(ctx, &pb.PutRequest{Key: key, Value: value})
				cancel()
				done := time.Now()
				switch {
				case err != nil:
					failures[client]++
					fmt.Fprintln(os.Stderr, "load: put:", err)
					time.Sleep(10 * time.Millisecond)
					continue
				case !done.Before(begin) && done.Before(end):
					committed[client]++
				}
				if !at.Before(begin) {
					latencies[client] = append(latencies[client], done.Sub(at))
				}
			}
		}()
	}
	time.Sleep(time.Until(begin))
	fmt.Println("begins")
	before, err := fsyncs(leader)
	if err != nil {
		return err
	}
	time.Sleep(time.Until(end))
	fmt.Println("ends")
	after, err := fsyncs(leader)
	if err != nil {
		return err
	}
	waiting.Wait()
	all := slices.Concat(latencies...)
	slices.Sort(all)
	puts := sum(committed)
	return json.NewEncoder(os.Stdout).Encode(report{
		Puts:          puts,
		Seconds:       window.Seconds(),
		PutsPerSecond: float64(puts) / window.Seconds(),
		LatencyUs: map[string]float64{
			"p50": quantile(all, 0.5), "p75": quantile(all, 0.75), "p90": quantile(all, 0.9),
			"p99": quantile(all, 0.99), "p999": quantile(all, 0.999), "max": quantile(all, 1),
		},
		Fsyncs: after - before,
		Failed: sum(failures),
	})
}

// fsyncs reads how often a member has synced its log.
func fsyncs(endpoint string) (float64, error) {
	response, err := http.Get("http://" + endpoint + "/metrics")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if count, found := strings.CutPrefix(lines.Text(), "etcd_disk_wal_fsync_duration_seconds_count "); found {
			return strconv.ParseFloat(count, 64)
		}
	}
	return 0, fmt.Errorf("the metrics of %s tell no count of syncs", endpoint)
}

func sum(numbers []int) int {
	total := 0
	for _, number := range numbers {
		total += number
	}
	return total
}

// quantile of sorted latencies, in microseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := min(int(q*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[at].Nanoseconds()) / 1000
}
