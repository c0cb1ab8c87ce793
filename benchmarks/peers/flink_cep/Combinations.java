import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.PrintWriter;
import java.io.Serializable;
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
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
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
        public double price;
        public int id;

        public Event() {}

        Event(char type, long time, double price, int id) {
            this.type = type;
            this.time = time;
            this.price = price;
            this.id = id;
        }
    }

    /** The match goes to the writer of this JVM: a sink of Flink's would cost more. */
    public static final class Write extends PatternProcessFunction<Event, Long> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Long> out) {
            matches++;
            if (writer != null) {
                List<Event> last = match.getOrDefault("c", match.get("b"));
                List<Event> second = match.getOrDefault("b", last);
                writer.println(match.get("a").get(0).time + "," + second.get(0).time + "," + last.get(last.size() - 1).time);
            }
        }
    }

    private static char[] types;
    private static long[] times;
    private static double[] prices;
    private static int[] ids;
    private static long matches;
    private static PrintWriter writer;

    private static SimpleCondition<Event> is(char type) {
        return SimpleCondition.of(event -> event.type == type);
    }

    /** A condition on an event and on the last event of an earlier step. */
    private interface Pair extends Serializable {
        boolean holds(Event event, Event before);
    }

    private static IterativeCondition<Event> and(char type, String step, Pair pair) {
        return new IterativeCondition<Event>() {
            @Override
            public boolean filter(Event event, Context<Event> context) throws Exception {
                if (event.type != type) {
                    return false;
                }
                Event before = null;
                for (Event one : context.getEventsForPattern(step)) {
                    before = one;
                }
                return pair.holds(event, before);
            }
        };
    }

    /** Rises in price: above the last event so far of these steps. */
    private static IterativeCondition<Event> rising(String... steps) {
        return new IterativeCondition<Event>() {
            @Override
            public boolean filter(Event event, Context<Event> context) throws Exception {
                if (event.type != 'A') {
                    return false;
                }
                Event before = null;
                for (String step : steps) {
                    for (Event one : context.getEventsForPattern(step)) {
                        before = one;
                    }
                }
                return before == null || event.price > before.price;
            }
        };
    }

    /** Queries that compare events; `most` is the longest time from the first event to the last. */
    private static Pattern<Event, ?> comparing(String query, long most) {
        Duration window = Duration.ofMillis(most + 1);
        long gap = most * 5 / 8;
        switch (query) {
            case "adjacent_rise":
                return Pattern.<Event>begin("a").where(is('A')).next("b").where(and('A', "a", (event, before) -> event.price > before.price));
            case "rising_run":
                return Pattern.<Event>begin("a").where(is('A')).next("b").where(rising("a", "b")).timesOrMore(2).consecutive();
            case "gaps":
                return Pattern.<Event>begin("a").where(is('A'))
                        .followedByAny("b").where(and('B', "a", (event, before) -> event.time - before.time <= gap))
                        .followedByAny("c").where(and('C', "b", (event, before) -> event.time - before.time <= gap)).within(window);
            case "equality":
                return Pattern.<Event>begin("a").where(is('D')).followedByAny("b").where(is('A'))
                        .followedByAny("c").where(and('B', "b", (event, before) -> event.id == before.id)).within(window);
            case "climb":
                return Pattern.<Event>begin("a").where(rising("a")).oneOrMore().allowCombinations()
                        .followedByAny("c").where(is('C')).within(window);
            default:
                throw new IllegalArgumentException(query);
        }
    }

    private static Pattern<Event, ?> pattern(String query, long most) {
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
                return comparing(query, most);
        }
    }

    private static void run(String query, long most, int events) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        env.getConfig().enableObjectReuse();
        env.getConfig().setAutoWatermarkInterval(10); // the default of 200 lets events pile up, which costs more
        DataStream<Event> stream = env.fromSequence(0, events - 1)
                .map(number -> new Event(types[number.intValue()], times[number.intValue()], prices[number.intValue()], ids[number.intValue()])).returns(Event.class)
                .assignTimestampsAndWatermarks(WatermarkStrategy.<Event>forMonotonousTimestamps()
                        .withTimestampAssigner((event, before) -> event.time));
        if (query.equals("adjacent_rise") || query.equals("rising_run")) {
            stream = stream.keyBy(event -> event.id);
        }
        CEP.pattern(stream, pattern(query, most)).process(new Write()).returns(Long.class).sinkTo(new DiscardingSink<>());
        env.execute();
    }

    public static void main(String[] args) throws Exception {
        String query = args[0];
        int events = Integer.parseInt(args[2]);
        int warmUp = Math.min(events, Integer.parseInt(args[4]));
        long most = Long.parseLong(args[5]);
        types = new char[events];
        times = new long[events];
        prices = new double[events];
        ids = new int[events];
        try (BufferedReader lines = Files.newBufferedReader(Path.of(args[1]))) {
            for (int row = 0; row < events; row++) {
                String[] fields = lines.readLine().split(",");
                types[row] = fields[0].charAt(0);
                times[row] = Long.parseLong(fields[1]);
                prices[row] = fields.length > 2 ? Double.parseDouble(fields[2]) : 0;
                ids[row] = fields.length > 3 ? Integer.parseInt(fields[3]) : 0;
            }
        }
        run(query, most, warmUp);
        matches = 0;
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu = system.getProcessCpuTime();
        long wall = System.nanoTime();
        try (PrintWriter opened = new PrintWriter(Files.newBufferedWriter(Path.of(args[3])))) {
            writer = opened;
            run(query, most, events);
        }
        System.out.printf("{\"matches\": %d, \"wall_seconds\": %.4f, \"cpu_seconds\": %.4f, \"start_up_cpu_seconds\": %.4f}%n",
                matches, (System.nanoTime() - wall) / 1e9, (system.getProcessCpuTime() - cpu) / 1e9, cpu / 1e9);
    }
}
