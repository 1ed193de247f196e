import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/**
 * One admin client. Each line of stdin, `churn PREFIX COUNT`, makes that many topics and deletes them again, ten at a
 * time; each ten is one line of stdout, and `done COUNT` the last. Each topic has a configuration of 12 KB, so that ninety
 * of them are more than a Fetch asks for.
 */
public class TopicChurn {
    private static final int STEP = 10;
    private static final String LONG_LIST = "0:1" + ",0:1".repeat(3100);

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        // Elections on a busy machine take their time, and a question that is asked twice gets another answer.
        properties.put("default.api.timeout.ms", "170000");
        properties.put("request.timeout.ms", "170000");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (Admin admin = Admin.create(properties)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.trim().split(" ");
                churn(admin, words[1], Integer.parseInt(words[2]));
            }
        }
    }

    private static void churn(Admin admin, String prefix, int count) throws Exception {
        for (int done = 0; done < count; done += STEP) {
            List<NewTopic> topics = new ArrayList<>();
            for (String name : names(prefix, done, count)) {
                Map<String, String> config = Map.of("leader.replication.throttled.replicas", LONG_LIST);
                topics.add(new NewTopic(name, 2, (short) 1).configs(config));
            }
            settle(() -> admin.createTopics(topics).values(), TopicExistsException.class);
            System.out.println("created " + (done + topics.size()));
        }
        for (int done = 0; done < count; done += STEP) {
            List<String> names = names(prefix, done, count);
            settle(() -> admin.deleteTopics(names).topicNameValues(), UnknownTopicOrPartitionException.class);
            System.out.println("deleted " + (done + names.size()));
        }
        System.out.println("done " + count);
    }

    /** Asks until all is done. A question that was asked again for an election's sake may find that it was done before. */
    private static void settle(Supplier<Map<String, KafkaFuture<Void>>> ask, Class<?> isDone) throws Exception {
        boolean isOver = false;
        while (!isOver) {
            isOver = true;
            for (KafkaFuture<Void> future : ask.get().values()) {
                try {
                    future.get();
                } catch (ExecutionException error) {
                    Throwable cause = error.getCause();
                    // No replicas: the broker was fenced for a moment, on a busy machine.
                    boolean maySucceed = cause instanceof RetriableException
                        || cause instanceof InvalidReplicationFactorException;
                    if (!isDone.isInstance(cause)) {
                        if (!maySucceed) {
                            throw error;
                        }
                        isOver = false;
                    }
                }
            }
            if (!isOver) {
                Thread.sleep(200);
            }
        }
    }

    private static List<String> names(String prefix, int from, int count) {
        List<String> names = new ArrayList<>();
        for (int i = from; i < Math.min(from + STEP, count); i++) {
            names.add(prefix + "-" + i);
        }
        return names;
    }
}
