//! Contact sheets: captioned rows of pictures, drawn as one.

use std::iter;

use image::imageops::{self, FilterType};
use image::{Rgb, RgbImage};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use crate::error::Error;

/// A larger sheet could not be looked at, and would take a gigabyte to draw.
const MAX_PIXELS: u64 = 200_000_000;

/// Pictures are shown at most so high, and never enlarged.
const MAX_PICTURE_HEIGHT: u32 = 160;

const MARGIN: u32 = 20;
/// Between pictures of one window.
const GAP: u32 = 6;
/// Between cameras, and between a row's text and its pictures.
const CAMERA_GAP: u32 = 24;
/// Between rows.
const ROW_GAP: u32 = 16;
const LINE_HEIGHT: u32 = 20;
/// The width of the text beside each row, in characters.
const CAPTION_CHARS: usize = 26;
const MAX_CAPTION_LINES: usize = 6;
const BORDER: u32 = 2;

const BACKGROUND: Rgb<u8> = Rgb([22, 24, 29]);
const TEXT: Rgb<u8> = Rgb([232, 234, 237]);
const FAINT_TEXT: Rgb<u8> = Rgb([150, 156, 166]);
const PADDING: Rgb<u8> = Rgb([235, 87, 87]);
const NOW: Rgb<u8> = Rgb([232, 234, 237]);

/// One picture of the whole: a heading, a column for each camera's window, and a row for each sample.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) title: String,
    pub(crate) cameras: Vec<Camera>,
    pub(crate) rows: Vec<Row>,
}

/// A camera and the times of its pictures, in seconds relative to the sample.
#[derive(Debug)]
pub(crate) struct Camera {
    pub(crate) name: String,
    pub(crate) deltas_s: Vec<f64>,
}

/// A sample: the pictures of all cameras, one after the other.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) heading: String,
    pub(crate) caption: String,
    pub(crate) tiles: Vec<Tile>,
}

/// One picture, and whether it stands for a time outside the episode.
#[derive(Debug)]
pub(crate) struct Tile {
    pub(crate) picture: RgbImage,
    pub(crate) is_pad: bool,
}

/// Where the pictures of one delta stand.
#[derive(Debug)]
struct Column {
    x: u32,
    delta_s: f64,
}

impl Sheet {
    /// Draws the sheet.
    ///
    /// # Errors
    ///
    /// [`Error::SheetTooLarge`] if it would have more than [`MAX_PIXELS`].
    pub(crate) fn draw(&self) -> Result<RgbImage, Error> {
        let captions: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| caption_lines(&row.caption))
            .collect();
        let heights: Vec<u32> = self
            .rows
            .iter()
            .zip(&captions)
            .map(|(row, caption)| row_height(row, caption))
            .collect();
        let (columns, names, width) = self.columns();
        let width = width
            .max(text_width(&self.title) + 2 * MARGIN)
            .max(text_width(LEGEND) + 2 * MARGIN);
        let first_row = MARGIN + 5 * LINE_HEIGHT;
        let height = heights
            .iter()
            .fold(u64::from(first_row + MARGIN), |sum, &height| {
                sum + u64::from(height + ROW_GAP)
            });
        let too_large = || Error::SheetTooLarge {
            width: u64::from(width),
            height,
            max_pixels: MAX_PIXELS,
        };
        if u64::from(width) * height > MAX_PIXELS {
            return Err(too_large());
        }
        let height = u32::try_from(height).map_err(|_too_high| too_large())?;

        let mut sheet = RgbImage::from_pixel(width, height, BACKGROUND);
        draw_text(&mut sheet, MARGIN, MARGIN, &self.title, TEXT);
        draw_text(&mut sheet, MARGIN, MARGIN + LINE_HEIGHT, LEGEND, FAINT_TEXT);
        for (camera, &x) in self.cameras.iter().zip(&names) {
            draw_text(
                &mut sheet,
                x,
                MARGIN + 5 * LINE_HEIGHT / 2,
                &camera.name,
                TEXT,
            );
        }
        for column in &columns {
            let label = delta_label(column.delta_s);
            draw_text(
                &mut sheet,
                column.x,
                MARGIN + 7 * LINE_HEIGHT / 2,
                &label,
                FAINT_TEXT,
            );
        }
        let mut y = first_row;
        for ((row, caption), height) in self.rows.iter().zip(&captions).zip(heights) {
            draw_text(&mut sheet, MARGIN, y, &row.heading, TEXT);
            for (line, text) in (1..).zip(caption) {
                draw_text(&mut sheet, MARGIN, y + line * LINE_HEIGHT, text, FAINT_TEXT);
            }
            for (tile, column) in row.tiles.iter().zip(&columns) {
                draw_tile(&mut sheet, column, y, tile);
            }
            y += height + ROW_GAP;
        }
        Ok(sheet)
    }

    /// Every delta's column, where every camera's name stands, and the width of all.
    fn columns(&self) -> (Vec<Column>, Vec<u32>, u32) {
        let mut x = MARGIN + CAPTION_CHARS as u32 * char_width() + CAMERA_GAP;
        let (mut columns, mut names) = (Vec::new(), Vec::new());
        for camera in &self.cameras {
            names.push(x);
            let end_of_name = x + text_width(&camera.name);
            for &delta_s in &camera.deltas_s {
                let position = columns.len();
                let pictures = self.rows.iter().filter_map(|row| row.tiles.get(position));
                let width = pictures
                    .map(|tile| shown_size(&tile.picture).0 + 2 * BORDER)
                    .chain(iter::once(text_width(&delta_label(delta_s))))
                    .max()
                    .unwrap_or(0);
                columns.push(Column { x, delta_s });
                x += width + GAP;
            }
            x = x.saturating_sub(GAP).max(end_of_name) + CAMERA_GAP;
        }
        (columns, names, x - CAMERA_GAP + MARGIN)
    }
}

const LEGEND: &str =
    "hatched: outside the episode, its edge repeated (is_pad)   framed: the sample's own frame";

/// The height of a row's pictures or of its text, whichever is more.
fn row_height(row: &Row, caption: &[String]) -> u32 {
    let text = (1 + caption.len() as u32) * LINE_HEIGHT;
    let pictures = row
        .tiles
        .iter()
        .map(|tile| shown_size(&tile.picture).1 + 2 * BORDER);
    pictures.max().unwrap_or(0).max(text)
}

/// Width and height at which a picture is shown.
fn shown_size(picture: &RgbImage) -> (u32, u32) {
    let (width, height) = picture.dimensions();
    if height <= MAX_PICTURE_HEIGHT {
        return (width, height);
    }
    let width = u64::from(width) * u64::from(MAX_PICTURE_HEIGHT) / u64::from(height);
    (
        u32::try_from(width)
            .expect("it is narrower than the picture")
            .max(1),
        MAX_PICTURE_HEIGHT,
    )
}

fn draw_tile(sheet: &mut RgbImage, column: &Column, y: u32, tile: &Tile) {
    let (width, height) = shown_size(&tile.picture);
    let mut shown = imageops::resize(&tile.picture, width, height, FilterType::Triangle);
    if tile.is_pad {
        hatch(&mut shown);
    }
    let frame = match (tile.is_pad, column.delta_s == 0.0) {
        (true, _) => Some(PADDING),
        (false, true) => Some(NOW),
        (false, false) => None,
    };
    if let Some(color) = frame {
        fill(
            sheet,
            column.x,
            y,
            width + 2 * BORDER,
            height + 2 * BORDER,
            color,
        );
    }
    imageops::replace(
        sheet,
        &shown,
        i64::from(column.x + BORDER),
        i64::from(y + BORDER),
    );
    if tile.is_pad {
        let label = " pad ";
        let (label_width, label_height) = (text_width(label), LINE_HEIGHT);
        if label_width <= width && label_height <= height {
            let (x, y) = (column.x + BORDER, y + BORDER + height - label_height);
            fill(sheet, x, y, label_width, label_height, PADDING);
            draw_text(sheet, x, y + 2, label, BACKGROUND);
        }
    }
}

/// Darkens a picture and draws diagonal lines over it.
fn hatch(picture: &mut RgbImage) {
    for (x, y, pixel) in picture.enumerate_pixels_mut() {
        let (over, amount) = if (x + y) % 14 < 2 {
            (PADDING, 200)
        } else {
            (BACKGROUND, 110)
        };
        *pixel = blend(*pixel, over, amount);
    }
}

fn fill(sheet: &mut RgbImage, x: u32, y: u32, width: u32, height: u32, color: Rgb<u8>) {
    for (x, y) in (y..y + height).flat_map(|y| (x..x + width).map(move |x| (x, y))) {
        if let Some(pixel) = sheet.get_pixel_mut_checked(x, y) {
            *pixel = color;
        }
    }
}

/// Draws one line of text, its upper left corner at `x`, `y`. A character without a glyph becomes `?`.
fn draw_text(sheet: &mut RgbImage, x: u32, y: u32, text: &str, color: Rgb<u8>) {
    let corners = (x..).step_by(char_width() as usize);
    for (c, x) in text.chars().zip(corners) {
        let glyph = |c| get_raster(c, FontWeight::Regular, RasterHeight::Size16);
        let Some(glyph) = glyph(c).or_else(|| glyph('?')) else {
            continue;
        };
        for (row, y) in glyph.rows().zip(y..) {
            for (&ink, x) in row.iter().zip(x..) {
                if let Some(pixel) = sheet.get_pixel_mut_checked(x, y) {
                    *pixel = blend(*pixel, color, ink);
                }
            }
        }
    }
}

/// `under` covered by `over`: not at all at 0, wholly at 255.
fn blend(under: Rgb<u8>, over: Rgb<u8>, amount: u8) -> Rgb<u8> {
    let amount = u32::from(amount);
    let mix = |under: u8, over: u8| {
        let level = (u32::from(under) * (255 - amount) + u32::from(over) * amount) / 255;
        u8::try_from(level).expect("a mean lies between its parts")
    };
    let (Rgb(under), Rgb(over)) = (under, over);
    Rgb([
        mix(under[0], over[0]),
        mix(under[1], over[1]),
        mix(under[2], over[2]),
    ])
}

fn char_width() -> u32 {
    get_raster_width(FontWeight::Regular, RasterHeight::Size16) as u32
}

fn text_width(text: &str) -> u32 {
    u32::try_from(text.chars().count())
        .unwrap_or(u32::MAX)
        .saturating_mul(char_width())
}

/// `-0.3 s`, `0 s`, `+0.033 s`: to the millisecond, the rest is rounding.
fn delta_label(delta_s: f64) -> String {
    let text = format!("{delta_s:+.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "+0" | "-0" | "+" | "-" => "0 s".to_owned(),
        text => format!("{text} s"),
    }
}

/// A caption's lines. A task can be a long story; its beginning tells which one it is.
fn caption_lines(text: &str) -> Vec<String> {
    let mut lines = wrap(text, CAPTION_CHARS);
    if lines.len() > MAX_CAPTION_LINES {
        lines.truncate(MAX_CAPTION_LINES - 1);
        lines.push("...".to_owned());
    }
    lines
}

/// Breaks a text into lines of at most `width` characters, at spaces where it can.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        for part in letters.chunks(width) {
            let fits = |line: &&mut String| line.chars().count() + 1 + part.len() <= width;
            match lines.last_mut().filter(fits) {
                Some(line) => {
                    line.push(' ');
                    line.extend(part);
                }
                None => lines.push(part.iter().collect()),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(width: u32, height: u32, is_pad: bool) -> Tile {
        Tile {
            picture: RgbImage::from_pixel(width, height, Rgb([0, 255, 0])),
            is_pad,
        }
    }

    fn sheet(rows: Vec<Row>) -> Sheet {
        let camera = Camera {
            name: "top".to_owned(),
            deltas_s: vec![-0.1, 0.0],
        };
        Sheet {
            title: "a dataset".to_owned(),
            cameras: vec![camera],
            rows,
        }
    }

    fn row(tiles: Vec<Tile>) -> Row {
        Row {
            heading: "episode 0, frame 0".to_owned(),
            caption: String::new(),
            tiles,
        }
    }

    #[test]
    fn padding_is_marked_and_nothing_else_is() {
        let drawn = sheet(vec![row(vec![tile(96, 96, true), tile(96, 96, false)])])
            .draw()
            .unwrap();
        let of_color = |color| drawn.pixels().filter(|&&pixel| pixel == color).count();
        assert!(
            of_color(PADDING) > 1000,
            "frame and label of the padded picture"
        );
        assert_eq!(
            of_color(Rgb([0, 255, 0])),
            96 * 96,
            "the other picture, untouched"
        );

        let drawn = sheet(vec![row(vec![tile(96, 96, false), tile(96, 96, false)])])
            .draw()
            .unwrap();
        assert!(drawn.pixels().all(|&pixel| pixel != PADDING));
    }

    #[test]
    fn large_pictures_are_shown_smaller() {
        assert_eq!(shown_size(&RgbImage::new(640, 480)), (213, 160));
        assert_eq!(shown_size(&RgbImage::new(96, 96)), (96, 96));
        assert_eq!(shown_size(&RgbImage::new(1, 10_000)), (1, 160));
    }

    #[test]
    fn a_sheet_has_a_largest_size() {
        let rows = (0..60_000).map(|_| row(vec![tile(1, 1, false)])).collect();
        assert!(matches!(
            sheet(rows).draw(),
            Err(Error::SheetTooLarge { .. })
        ));
    }

    #[test]
    fn deltas_are_labelled_to_the_millisecond() {
        for (delta_s, label) in [
            (0.0, "0 s"),
            (-0.0, "0 s"),
            (1.0 / 30.0, "+0.033 s"),
            (-0.3, "-0.3 s"),
            (2.0, "+2 s"),
            (10.0, "+10 s"),
            (-0.0001, "0 s"),
        ] {
            assert_eq!(delta_label(delta_s), label);
        }
    }

    #[test]
    fn captions_break_at_spaces_and_long_words_anywhere() {
        for (text, lines) in [
            ("", &[][..]),
            ("one", &["one"]),
            ("one two three", &["one", "two", "three"]),
            ("a b c d", &["a b c", "d"]),
            ("abcdefgh i", &["abcde", "fgh i"]),
        ] {
            assert_eq!(wrap(text, 5), lines, "{text}");
        }
    }
}
