//! A table as SVG: panels one above the other over the same axis, a point for each median.

use std::fmt::Write as _;

use super::table::{Axis, Panel, Plot, Table, number};

// All in pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 25.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
const TITLE: f64 = 36.0;

const COLOURS: [&str; 2] = ["#1f77b4", "#d65f00"];

/// A plot as the text of an SVG file.
pub(super) fn svg(table: &Table, plot: &Plot) -> String {
    let height = TITLE + HEIGHT * plot.panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    text(&mut svg, (WIDTH / 2.0, 24.0), "middle", "font-size=\"16\"", plot.title);
    let points = table.points();
    let x = Scale::of(table.x, &points, LEFT, WIDTH - RIGHT);
    for (at, panel) in plot.panels.iter().enumerate() {
        draw(&mut svg, TITLE + HEIGHT * at as f64, table, &points, &x, panel);
    }
    svg + "</svg>\n"
}

fn draw(svg: &mut String, top: f64, table: &Table, points: &[f64], x: &Scale, panel: &Panel) {
    let (above, below) = (top + TOP, top + HEIGHT - BOTTOM);
    let line_of = |column: usize| -> Vec<(f64, f64)> {
        points.iter().filter_map(|x| Some((*x, table.median(*x, column)?))).collect()
    };
    let lines: Vec<Vec<(f64, f64)>> =
        panel.series.iter().map(|(column, _)| line_of(*column)).collect();
    let values: Vec<f64> = lines.iter().flatten().map(|(_, y)| *y).collect();
    let y = Scale::of(panel.y, &values, below, above);
    for tick in x.ticks() {
        let at = x.place(tick);
        let _ = writeln!(svg, "<path d=\"M{at:.1} {above}V{below}\" stroke=\"#dddddd\"/>");
        text(svg, (at, below + 16.0), "middle", "", &short(tick));
    }
    for tick in y.ticks() {
        let at = y.place(tick);
        let _ = writeln!(svg, "<path d=\"M{LEFT} {at:.1}H{}\" stroke=\"#dddddd\"/>", WIDTH - RIGHT);
        text(svg, (LEFT - 8.0, at + 4.0), "end", "", &short(tick));
    }
    let _ = writeln!(
        svg,
        "<path d=\"M{LEFT} {above}V{below}H{}\" fill=\"none\" stroke=\"black\"/>",
        WIDTH - RIGHT
    );
    text(svg, (f64::midpoint(LEFT, WIDTH - RIGHT), below + 34.0), "middle", "", &x.label());
    let middle = f64::midpoint(above, below);
    let turned = format!("transform=\"rotate(-90 22 {middle})\"");
    text(svg, (22.0, middle), "middle", &turned, &y.label());
    for (at, ((_, name), line)) in panel.series.iter().zip(&lines).enumerate() {
        let colour = COLOURS.get(at % COLOURS.len()).copied().unwrap_or_default();
        let mut path = String::new();
        for (x, y) in line.iter().map(|(at, value)| (x.place(*at), y.place(*value))) {
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
            let _ =
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
        }
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
        );
        let (from, high) = (LEFT + 10.0 + 190.0 * at as f64, top + 22.0);
        let _ = writeln!(
            svg,
            "<path d=\"M{from} {high}h24\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
             <circle cx=\"{}\" cy=\"{high}\" r=\"3.5\" fill=\"{colour}\"/>",
            from + 12.0
        );
        text(svg, (from + 30.0, high + 4.0), "start", "", name);
    }
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, more: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {more}>{text}</text>"
    );
}

/// `0.05`, `250`, `10k`, `2.5M`.
fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        1e6.. => (value / 1e6, "M"),
        1e4.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    // As few decimals as tell it apart.
    let decimals = (0..6).find(|decimals| (value - rounded(value, *decimals)).abs() < 1e-9);
    number(value, usize::try_from(decimals.unwrap_or(6)).unwrap_or(6)) + unit
}

fn rounded(value: f64, decimals: i32) -> f64 {
    (value * 10f64.powi(decimals)).round() / 10f64.powi(decimals)
}

/// Where the values of an axis are drawn.
struct Scale {
    axis: Axis,
    /// In values, or in powers of ten.
    from: f64,
    to: f64,
    step: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// All values fit; a linear axis begins at 0.
    fn of(axis: Axis, values: &[f64], start: f64, end: f64) -> Scale {
        let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let (from, to, step) = if axis.is_log {
            let least = values.iter().copied().filter(|value| *value > 0.0).fold(most, f64::min);
            let (from, to) = (least.log10().floor(), most.log10().ceil());
            (from, to.max(from + 1.0), 1.0)
        } else {
            let step = nice_step(most / 4.0);
            (0.0, (most / step).ceil() * step, step)
        };
        Scale { axis, from, to, step, start, end }
    }

    fn place(&self, value: f64) -> f64 {
        let value = if self.axis.is_log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        self.start + (value - self.from) / (self.to - self.from) * (self.end - self.start)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let (from, step, is_log) = (self.from, self.step, self.axis.is_log);
        let last = self.to + step / 2.0;
        let ticks = (0..32).map(move |at| from + step * f64::from(at));
        ticks
            .take_while(move |tick| *tick < last)
            .map(move |tick| if is_log { 10f64.powf(tick) } else { tick })
    }

    fn label(&self) -> String {
        format!("{}{}", self.axis.name, if self.axis.is_log { " (log scale)" } else { "" })
    }
}

/// The smallest 1, 2 or 5 times a power of ten that is not below this.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let nice = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least * 0.999);
    nice.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::super::table::{Column, Sample};
    use super::*;

    #[test]
    fn scales_hold_all_values_between_round_ticks() {
        let axis = |is_log| Axis { name: "things", is_log };
        let linear = Scale::of(axis(false), &[3.0, 37.0], 100.0, 200.0);
        assert_eq!(linear.ticks().collect::<Vec<_>>(), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!((linear.place(0.0), linear.place(20.0)), (100.0, 150.0));
        let log = Scale::of(axis(true), &[20.0, 4000.0], 0.0, 90.0);
        assert_eq!(
            log.ticks().map(|tick| tick.round()).collect::<Vec<_>>(),
            [10.0, 100.0, 1000.0, 10000.0]
        );
        assert!((log.place(1000.0) - 60.0).abs() < 1e-9);
        assert_eq!(Scale::of(axis(false), &[], 0.0, 1.0).from, 0.0);
    }

    #[test]
    fn ticks_are_short() {
        for (value, text) in
            [(0.0, "0"), (0.05, "0.05"), (250.0, "250"), (10_000.0, "10k"), (2_500_000.0, "2.5M")]
        {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn each_series_has_its_points_and_its_name() {
        let axis = |name| Axis { name, is_log: false };
        let sample = |x, a, b| Sample { x, figures: vec![a, b] };
        let table = Table {
            title: String::new(),
            x: axis("voters"),
            columns: ["a", "b"].map(|name| Column::new(name, 0)).into(),
            samples: vec![sample(1.0, 10.0, 1.0), sample(3.0, 20.0, 2.0)],
            plots: Vec::new(),
        };
        let panel = || Panel { y: axis("a & b"), series: vec![(0, "first"), (1, "second")] };
        let plot = Plot { name: "it", title: "A < B", panels: vec![panel(), panel()] };
        let svg = svg(&table, &plot);
        // Each series has two points and one in the legend.
        assert_eq!(svg.matches("<circle").count(), 2 * 2 * 3);
        assert_eq!((svg.matches(">second<").count(), svg.matches(">voters<").count()), (2, 2));
        assert!(svg.contains("A &lt; B") && svg.contains("a &amp; b") && !svg.contains("NaN"));
    }
}
