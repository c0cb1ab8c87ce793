import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;

/** Esper in a JVM of its own: its clock is the time of the events, events are objects in memory, matches come out by a callback. */
public final class Esper {
    public static final class Event {
        private final String type;
        private final long ts;
        private final double price;
        private final int id;

        Event(String type, long ts, double price, int id) {
            this.type = type;
            this.ts = ts;
            this.price = price;
            this.id = id;
        }

        public String getType() {
            return type;
        }

        public long getTs() {
            return ts;
        }

        public double getPrice() {
            return price;
        }

        public int getId() {
            return id;
        }
    }

    /** A step of a pattern: every event of this type that the condition holds for, until so many milliseconds after the step before. */
    private static String step(String name, String type, String condition, long milliseconds) {
        return String.format("((every %s=Event(type='%s'%s)) where timer:within(%d msec))", name, type, condition, milliseconds);
    }

    /** `window` is the longest time from the first event to the last; a timer ends a step one millisecond later, so that it is included. */
    private static String statement(String query, long window) {
        String abc = "select a.ts as a, b.ts as b, c.ts as c from pattern [every a=Event(type='A') -> ";
        switch (query) {
            case "adjacent_rise":
                return "select * from Event match_recognize (partition by id measures a.ts as a, b.ts as b, b.ts as c "
                        + "all matches after match skip to next row pattern (a b) define b as b.price > a.price)";
            case "rising_run":
                return "select * from Event match_recognize (partition by id measures a.ts as a, first(b.ts) as b, last(b.ts) as c "
                        + "all matches after match skip to current row pattern (a b b+) define b as b.price > prev(b.price))";
            case "gaps": {
                long gap = window * 5 / 8;
                return abc + step("b", "B", "", gap + 1) + " -> " + step("c", "C", ", ts - a.ts <= " + window, gap + 1) + "]";
            }
            case "equality":
                return "select a.ts as a, b.ts as b, c.ts as c from pattern [every a=Event(type='D') -> ((every b=Event(type='A')"
                        + " -> every c=Event(type='B', id=b.id)) where timer:within(" + (window + 1) + " msec))]";
            case "joined":
                return abc + step("b", "B", ", id = a.id", window + 1) + " -> "
                        + step("c", "C", ", ts - a.ts <= " + window, window + 1) + "]";
            case "order":
                return "select a.ts as a, c.ts as b, c.ts as c from pattern [every a=Event(type='A') -> "
                        + step("c", "C", ", price > a.price", window + 1) + "]";
            default:
                throw new IllegalArgumentException(query);
        }
    }

    private static long run(String query, long window, Event[] all, int events, PrintWriter writer) throws Exception {
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType("Event", Event.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPCompiled compiled = EPCompilerProvider.getCompiler().compile(statement(query, window), new CompilerArguments(configuration));
        EPRuntime runtime = EPRuntimeProvider.getRuntime(query + events, configuration);
        EPEventService service = runtime.getEventService();
        service.advanceTime(0);
        long[] matches = {0};
        runtime.getDeploymentService().deploy(compiled).getStatements()[0].addListener((found, old, statement, itself) -> {
            if (found == null) {
                return;
            }
            matches[0] += found.length;
            if (writer != null) {
                for (EventBean match : found) {
                    writer.println(match.get("a") + "," + match.get("b") + "," + match.get("c"));
                }
            }
        });
        for (int row = 0; row < events; row++) {
            service.advanceTime(all[row].ts);
            service.sendEventBean(all[row], "Event");
        }
        runtime.destroy();
        return matches[0];
    }

    public static void main(String[] args) throws Exception {
        String query = args[0];
        long window = Long.parseLong(args[1]);
        int events = Integer.parseInt(args[3]);
        int warmUp = Math.min(events, Integer.parseInt(args[5]));
        Event[] all = new Event[events];
        try (BufferedReader lines = Files.newBufferedReader(Path.of(args[2]))) {
            for (int row = 0; row < events; row++) {
                String[] fields = lines.readLine().split(",");
                all[row] = new Event(fields[0].intern(), Long.parseLong(fields[1]), Double.parseDouble(fields[2]), Integer.parseInt(fields[3]));
            }
        }
        run(query, window, all, warmUp, null);
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu = system.getProcessCpuTime();
        long wall = System.nanoTime();
        long matches;
        try (PrintWriter writer = new PrintWriter(Files.newBufferedWriter(Path.of(args[4])))) {
            matches = run(query, window, all, events, writer);
        }
        System.out.printf("{\"matches\": %d, \"wall_seconds\": %.4f, \"cpu_seconds\": %.4f, \"start_up_cpu_seconds\": %.4f}%n",
                matches, (System.nanoTime() - wall) / 1e9, (system.getProcessCpuTime() - cpu) / 1e9, cpu / 1e9);
    }
}
