//! A camera's field as pictures.

use std::path::Path;

use episode_pool::{Array, ArrayData};
use image::{DynamicImage, ImageFormat, Luma, RgbImage};

use crate::error::Error;

/// Depth maps: one 16-bit code a pixel.
type DepthImage = image::ImageBuffer<Luma<u16>, Vec<u16>>;

/// The pictures of a camera's array, `[H, W, C]` or with a window `[T, H, W, C]`, in order: 8-bit RGB, or 16-bit grey for
/// depth.
///
/// # Panics
///
/// If the array has another form, as with other options than the default ones for layout and type.
pub(crate) fn from_array(array: &Array) -> Vec<DynamicImage> {
    const FORM: &str = "a camera's array is [.., H, W, C] of u8, or of u16 for depth";
    let &[.., height, width, channels] = array.shape() else {
        panic!("{FORM}")
    };
    let side = |length: usize| {
        u32::try_from(length).expect("a picture that fits in memory has short sides")
    };
    let (rows, columns) = (side(height), side(width));
    let size = (height * width * channels).max(1);
    match array.data() {
        ArrayData::U8(samples) => samples
            .chunks_exact(size)
            .map(|picture| {
                RgbImage::from_raw(columns, rows, picture.to_vec())
                    .expect(FORM)
                    .into()
            })
            .collect(),
        ArrayData::U16(codes) => codes
            .chunks_exact(size)
            .map(|picture| {
                DepthImage::from_raw(columns, rows, picture.to_vec())
                    .expect(FORM)
                    .into()
            })
            .collect(),
        _ => panic!("{FORM}"),
    }
}

/// The pictures as 8-bit RGB for looking at. Depth codes are stretched from the lowest to the highest of all of them, so
/// that the pictures of a window can be compared.
pub(crate) fn for_eyes(pictures: Vec<DynamicImage>) -> Vec<RgbImage> {
    let depths = pictures.iter().filter_map(DynamicImage::as_luma16);
    let codes = depths.flat_map(|depth| depth.iter().copied());
    let (lowest, highest) = codes.fold((u16::MAX, 0), |(lowest, highest), code| {
        (code.min(lowest), code.max(highest))
    });
    let range = u32::from(highest.saturating_sub(lowest)).max(1);
    let stretch = |code: u16| {
        let level = u32::from(code - lowest) * 255 / range;
        u8::try_from(level).expect("a code is at most the highest")
    };
    let to_rgb = |picture: DynamicImage| match picture {
        DynamicImage::ImageLuma16(depth) => {
            RgbImage::from_fn(depth.width(), depth.height(), |x, y| {
                let Luma([code]) = *depth.get_pixel(x, y);
                image::Rgb([stretch(code); 3])
            })
        }
        other => other.into_rgb8(),
    };
    pictures.into_iter().map(to_rgb).collect()
}

/// Writes a picture as PNG.
pub(crate) fn write_png(picture: &DynamicImage, path: &Path) -> Result<(), Error> {
    picture
        .save_with_format(path, ImageFormat::Png)
        .map_err(|source| Error::WritePicture {
            path: path.to_owned(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_several_pictures() {
        let array = Array::new(vec![2, 1, 2, 3], ArrayData::U8((0..12).collect())).unwrap();
        let pictures = from_array(&array);
        assert_eq!(pictures.len(), 2);
        assert_eq!((pictures[1].width(), pictures[1].height()), (2, 1));
        assert_eq!(pictures[1].as_bytes(), [6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn depth_is_kept_and_stretched_over_the_window_for_eyes() {
        let array =
            Array::new(vec![2, 1, 2, 1], ArrayData::U16(vec![64, 1024, 2048, 4032])).unwrap();
        let pictures = from_array(&array);
        assert_eq!(pictures[0].as_luma16().unwrap().as_raw(), &[64, 1024]);
        let shown: Vec<u8> = for_eyes(pictures)
            .iter()
            .flat_map(|picture| picture.as_raw().clone())
            .collect();
        assert_eq!(shown, [0, 0, 0, 61, 61, 61, 127, 127, 127, 255, 255, 255]);
    }

    #[test]
    fn depth_of_one_code_is_black() {
        let array = Array::new(vec![1, 2, 1], ArrayData::U16(vec![9, 9])).unwrap();
        assert_eq!(for_eyes(from_array(&array))[0].as_raw(), &[0; 6]);
    }
}
