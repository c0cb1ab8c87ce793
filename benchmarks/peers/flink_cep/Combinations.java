import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/** Flink's pattern API for Java: strict contiguity, relaxed contiguity, all combinations; events come from an array in the same JVM. */
public final class Combinations {
    public static final class Event {
        public char type;
        public long time;

        public Event() {}

        Event(char type, long time) {
            this.type = type;
            this.time = time;
        }
    }

    /** The match goes to the writer of this JVM: a sink of Flink's would cost more. */
    public static final class Write extends PatternProcessFunction<Event, Long> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Long> out) {
            matches++;
            if (writer != null) {
                writer.println(time(match, "a") + "," + time(match, "b") + "," + time(match, "c"));
            }
        }

        private static long time(Map<String, List<Event>> match, String name) {
            return match.get(name).get(0).time;
        }
    }

    private static char[] types;
    private static long[] times;
    private static long matches;
    private static PrintWriter writer;

    private static SimpleCondition<Event> is(char type) {
        return SimpleCondition.of(event -> event.type == type);
    }

    private static Pattern<Event, ?> pattern(String query) {
        Duration window = Duration.ofMillis(100);
        AfterMatchSkipStrategy consume = AfterMatchSkipStrategy.skipPastLastEvent();
        switch (query) {
            case "strict":
                return Pattern.<Event>begin("a", consume).where(is('A')).next("b").where(is('B')).next("c").where(is('C')).within(window);
            case "next":
                return Pattern.<Event>begin("a", consume).where(is('A')).followedBy("b").where(is('B'))
                        .followedBy("c").where(is('C')).within(window);
            case "all":
                return Pattern.<Event>begin("a").where(is('A')).followedByAny("b").where(is('B'))
                        .followedByAny("c").where(is('C')).within(window);
            default:
                throw new IllegalArgumentException(query);
        }
    }

    private static void run(String query, int events) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        env.getConfig().enableObjectReuse();
        env.getConfig().setAutoWatermarkInterval(10); // the default of 200 lets events pile up, which costs more
        DataStream<Event> stream = env.fromSequence(0, events - 1)
                .map(number -> new Event(types[number.intValue()], times[number.intValue()])).returns(Event.class)
                .assignTimestampsAndWatermarks(WatermarkStrategy.<Event>forMonotonousTimestamps()
                        .withTimestampAssigner((event, before) -> event.time));
        CEP.pattern(stream, pattern(query)).process(new Write()).returns(Long.class).sinkTo(new DiscardingSink<>());
        env.execute();
    }

    public static void main(String[] args) throws Exception {
        String query = args[0];
        int events = Integer.parseInt(args[2]);
        int warmUp = Math.min(events, Integer.parseInt(args[4]));
        types = new char[events];
        times = new long[events];
        try (BufferedReader lines = Files.newBufferedReader(Path.of(args[1]))) {
            for (int row = 0; row < events; row++) {
                String line = lines.readLine();
                types[row] = line.charAt(0);
                times[row] = Long.parseLong(line.substring(2));
            }
        }
        run(query, warmUp);
        matches = 0;
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu = system.getProcessCpuTime();
        long wall = System.nanoTime();
        try (PrintWriter opened = new PrintWriter(Files.newBufferedWriter(Path.of(args[3])))) {
            writer = opened;
            run(query, events);
        }
        System.out.printf("{\"matches\": %d, \"wall_seconds\": %.4f, \"cpu_seconds\": %.4f, \"start_up_cpu_seconds\": %.4f}%n",
                matches, (System.nanoTime() - wall) / 1e9, (system.getProcessCpuTime() - cpu) / 1e9, cpu / 1e9);
    }
}
