import com.sun.management.OperatingSystemMXBean;
import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;
import java.io.BufferedReader;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Siddhi in a JVM of its own: the time of an event is its attribute, batches of events go in, matches come out by a callback. */
public final class Siddhi {
    private static final int BATCH = 1000;
    private static final Map<String, String> PATTERNS = Map.of(
            "strict", "every e1=Events[name=='A'], e2=Events[name=='B'], e3=Events[name=='C']",
            "next", "every (e1=Events[name=='A'] -> e2=Events[name=='B'] -> e3=Events[name=='C']) within 99 milliseconds",
            "all", "(every e1=Events[name=='A'] -> every e2=Events[name=='B'] -> every e3=Events[name=='C']) within 99 milliseconds");

    private static long run(String query, String[] types, long[] times, int events, PrintWriter writer) throws Exception {
        SiddhiManager manager = new SiddhiManager();
        SiddhiAppRuntime app = manager.createSiddhiAppRuntime("@app:playback define stream Events (name string, ts long); from "
                + PATTERNS.get(query) + " select e1.ts as a, e2.ts as b, e3.ts as c insert into Matches;");
        long[] matches = {0};
        app.addCallback("Matches", new StreamCallback() {
            @Override
            public void receive(Event[] found) {
                matches[0] += found.length;
                for (Event match : found) {
                    if (writer != null) {
                        writer.println(match.getData(0) + "," + match.getData(1) + "," + match.getData(2));
                    }
                }
            }
        });
        InputHandler input = app.getInputHandler("Events");
        app.start();
        for (int start = 0; start < events; start += BATCH) {
            Event[] batch = new Event[Math.min(BATCH, events - start)];
            for (int row = 0; row < batch.length; row++) {
                batch[row] = new Event(1 + times[start + row], new Object[] {types[start + row], times[start + row]});
            }
            input.send(batch);
        }
        app.shutdown();
        manager.shutdown();
        return matches[0];
    }

    public static void main(String[] args) throws Exception {
        int events = Integer.parseInt(args[2]);
        int warmUp = Math.min(events, Integer.parseInt(args[4]));
        String[] types = new String[events];
        long[] times = new long[events];
        try (BufferedReader lines = Files.newBufferedReader(Path.of(args[1]))) {
            for (int row = 0; row < events; row++) {
                String line = lines.readLine();
                types[row] = line.substring(0, 1).intern();
                times[row] = Long.parseLong(line.substring(2));
            }
        }
        run(args[0], types, times, warmUp, null);
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu = system.getProcessCpuTime();
        long wall = System.nanoTime();
        long matches;
        try (PrintWriter writer = new PrintWriter(Files.newBufferedWriter(Path.of(args[3])))) {
            matches = run(args[0], types, times, events, writer);
        }
        System.out.printf("{\"matches\": %d, \"wall_seconds\": %.4f, \"cpu_seconds\": %.4f, \"start_up_cpu_seconds\": %.4f}%n",
                matches, (System.nanoTime() - wall) / 1e9, (system.getProcessCpuTime() - cpu) / 1e9, cpu / 1e9);
    }
}
