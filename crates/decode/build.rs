//! Checks that the FFmpeg that `rusty_ffmpeg` binds is one that this crate is written for, and says what to do where it is not.

/// libavcodec's versions: of FFmpeg 5.1, and of the first that is too new.
const FIRST: &str = "59.37";
const TOO_NEW: &str = "63";

/// Set by whoever links an FFmpeg that pkg-config does not know. The version of its headers is then checked by the compiler.
const WITHOUT_PKG_CONFIG: [&str; 3] = ["FFMPEG_DLL_PATH", "FFMPEG_LIBS_DIR", "DOCS_RS"];

const REMEDY: &str = "On Debian 12 or 13, or Ubuntu 24.04, run: apt-get install pkg-config libclang-dev libavcodec-dev libavdevice-dev \
                      libavfilter-dev libavformat-dev libavutil-dev libswresample-dev libswscale-dev";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for name in WITHOUT_PKG_CONFIG {
        println!("cargo::rerun-if-env-changed={name}");
    }
    if WITHOUT_PKG_CONFIG
        .iter()
        .any(|name| std::env::var_os(name).is_some())
    {
        return;
    }
    // `rusty_ffmpeg` does the linking: this only asks for the version.
    let found = pkg_config::Config::new()
        .cargo_metadata(false)
        .probe("libavcodec");
    match found {
        Ok(library) if is_supported(&library.version) => {}
        Ok(library) => println!(
            "cargo::error=decode: found libavcodec {}, need FFmpeg 5.1 to 8 (libavcodec {FIRST} up to, but not including, {TOO_NEW}). {REMEDY}",
            library.version
        ),
        Err(error) => println!(
            "cargo::error=decode: found no libavcodec, need FFmpeg 5.1 to 8. {REMEDY}. (pkg-config says: {})",
            error.to_string().replace('\n', " ")
        ),
    }
}

/// Whether a version such as `59.37.100` lies within the bounds.
fn is_supported(version: &str) -> bool {
    let parts = |version: &str| {
        version
            .split('.')
            .map(|part| part.parse().unwrap_or(0))
            .collect::<Vec<u32>>()
    };
    let version = parts(version);
    version >= parts(FIRST) && version < parts(TOO_NEW)
}
